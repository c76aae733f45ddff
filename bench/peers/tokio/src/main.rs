// SPDX-License-Identifier: MIT
//! Tokio beside weft: echo server, micro-benchmarks, file work.
//!
//!   tokio-peer echo  --port P --threads T [--buf N]
//!   tokio-peer micro BENCH --workers T [--label L]
//!   tokio-peer file  rand_cached|rand_direct|rand_fs|copy_fs|copy_pool
//!                    --workers T --path F [--dst G] [--secs S]
//!
//! Every result is one JSON line. All work runs in spawned tasks, so on a
//! worker and not on the thread in block_on(); only `micro foreign` measures
//! that thread.
mod file;
mod micro;
mod udp;

use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

pub type Res<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

pub struct Options {
    port: u16,
    workers: usize,
    buf: usize,
    label: String,
    path: String,
    dst: String,
    secs: f64,
    words: Vec<String>,
}

impl Options {
    fn parse(args: impl Iterator<Item = String>) -> Res<Self> {
        let mut o = Options {
            port: 0,
            workers: 1,
            buf: 4096,
            label: "tokio".into(),
            path: String::new(),
            dst: String::new(),
            secs: 2.0,
            words: Vec::new(),
        };
        let mut args = args.peekable();
        while let Some(k) = args.next() {
            if k.starts_with("--") {
                let v = args.next().ok_or("option needs a value")?;
                o.set(&k, v)?;
            } else {
                o.words.push(k);
            }
        }
        Ok(o)
    }

    fn set(&mut self, name: &str, v: String) -> Res<()> {
        match name {
            "--port" => self.port = v.parse()?,
            "--threads" | "--workers" => self.workers = v.parse()?,
            "--buf" => self.buf = v.parse()?,
            "--label" => self.label = v,
            "--path" => self.path = v,
            "--dst" => self.dst = v,
            "--secs" => self.secs = v.parse()?,
            _ => return Err(format!("unknown option {name}").into()),
        }
        Ok(())
    }

    fn word(&self, i: usize) -> &str {
        self.words.get(i).map_or("", |s| s.as_str())
    }

    fn emit(&self, bench: &str, value: f64, unit: &str) {
        println!(
            "{{\"bench\":\"{}\",\"peer\":\"{}\",\"workers\":{},\"value\":{:.3},\"unit\":\"{}\"}}",
            bench, self.label, self.workers, value, unit
        );
    }

    fn per_op(&self, bench: &str, took: Duration, ops: u64) {
        self.emit(bench, took.as_nanos() as f64 / ops as f64, "ns/op");
    }
}

async fn serve(mut s: TcpStream, buf: usize) {
    let mut buf = vec![0u8; buf];
    loop {
        match s.read(&mut buf).await {
            Ok(0) | Err(_) => return,
            Ok(n) => {
                if s.write_all(&buf[..n]).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn echo(o: &Options) -> Res<()> {
    let listener = TcpListener::bind(("127.0.0.1", o.port)).await?;
    loop {
        let (s, _) = listener.accept().await?;
        s.set_nodelay(true)?;
        tokio::spawn(serve(s, o.buf));
    }
}

async fn on_a_worker(o: Options) -> Res<()> {
    match o.word(0) {
        "echo" => echo(&o).await,
        "micro" => micro::run(&o).await,
        "file" => file::run(&o).await,
        _ => Err("echo | micro | file".into()),
    }
}

fn run(rt: &Runtime, o: Options) -> Res<()> {
    if o.word(0) == "micro" && o.word(1) == "foreign" {
        micro::foreign_spawn_join(rt, &o);
        return Ok(());
    }
    rt.block_on(async { tokio::spawn(on_a_worker(o)).await })?
}

fn main() -> Res<()> {
    let o = Options::parse(std::env::args().skip(1))?;
    let rt = Builder::new_multi_thread()
        .worker_threads(o.workers)
        .enable_all()
        .build()?;
    run(&rt, o)?;
    // Do not spend seconds tearing down a million sleeping tasks.
    std::process::exit(0)
}
