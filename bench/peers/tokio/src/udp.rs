// SPDX-License-Identifier: MIT
//! A datagram a call, as Tokio has it: one task sends as many as a round of
//! bench_udp from one socket to another, and receives them there.
use crate::{Options, Res};
use std::time::{Duration, Instant};
use tokio::net::UdpSocket;
use tokio::time::timeout;

struct Load {
    bench: &'static str,
    count: usize,
    bytes: usize,
}

const LOADS: [Load; 2] = [
    Load { bench: "udp", count: 64, bytes: 1200 },
    Load { bench: "udp_plain", count: 16, bytes: 100 },
];

/// The standard library has no processor time.
#[repr(C)]
struct Timespec {
    secs: i64,
    nanos: i64,
}

const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

fn cpu_time() -> Duration {
    let mut t = Timespec { secs: 0, nanos: 0 };
    // SAFETY: the time lives until the call returns.
    unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    Duration::new(t.secs as u64, t.nanos as u32)
}

impl Load {
    async fn round(&self, input: &UdpSocket, output: &UdpSocket,
                   message: &[u8], buf: &mut [u8]) -> Res<()> {
        for _ in 0..self.count {
            output.send(message).await?;
        }
        for _ in 0..self.count {
            input.recv_from(buf).await?;
        }
        Ok(())
    }

    async fn measure(&self, o: &Options) -> Res<()> {
        let input = UdpSocket::bind("127.0.0.1:0").await?;
        let output = UdpSocket::bind("127.0.0.1:0").await?;
        output.connect(input.local_addr()?).await?;
        let (message, mut buf) = (vec![0; self.bytes], vec![0; 1 << 16]);
        let end = Instant::now() + Duration::from_secs_f64(o.secs);
        let (began, mut done) = (cpu_time(), 0);
        while Instant::now() < end {
            for _ in 0..64 {
                self.round(&input, &output, &message, &mut buf).await?;
                done += self.count;
            }
        }
        let took = (cpu_time() - began).as_secs_f64();
        o.emit(self.bench, done as f64 / took, "datagrams/cpu-s");
        Ok(())
    }
}

/// Ends the program if a datagram is lost, when no other comes.
pub async fn run(o: &Options) -> Res<()> {
    for load in &LOADS {
        timeout(Duration::from_secs_f64(o.secs + 5.0), load.measure(o)).await??;
    }
    Ok(())
}
