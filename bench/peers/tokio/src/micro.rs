// SPDX-License-Identifier: MIT
//! The micro-benchmarks: spawn, join, yield, channels, locks, timers, memory.
use crate::{Options, Res};
use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::task::{Context, RawWaker, RawWakerVTable, Waker};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot, Mutex, Semaphore};
use tokio::task::yield_now;
use tokio::time::{sleep, Sleep};

async fn empty() {}

async fn suspended() {
    yield_now().await
}

async fn spawn_join<F>(o: &Options, bench: &str, body: fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let n = 1_000_000;
    let t = Instant::now();
    for _ in 0..n {
        tokio::spawn(body()).await.unwrap();
    }
    o.per_op(bench, t.elapsed(), n);
}

/// The first round, on a cold heap, is reported separately.
async fn fork_join<F>(o: &Options, bench: &str, body: fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (n, rounds) = (100_000, 10);
    let mut handles = Vec::with_capacity(n as usize);
    let mut t = Instant::now();
    for round in 0..=rounds {
        if round == 1 {
            o.per_op(&format!("{bench}_cold"), t.elapsed(), n);
            t = Instant::now();
        }
        for _ in 0..n {
            handles.push(tokio::spawn(body()));
        }
        for h in handles.drain(..) {
            h.await.unwrap();
        }
    }
    o.per_op(bench, t.elapsed(), n * rounds);
}

/// The main thread, which is not a worker, spawns a task and waits for it, in turn.
pub fn foreign_spawn_join(rt: &Runtime, o: &Options) {
    let n = 100_000;
    let t = Instant::now();
    for _ in 0..n {
        rt.block_on(rt.spawn(empty())).unwrap();
    }
    o.per_op("foreign_spawn_join", t.elapsed(), n);
}

async fn yields(n: u64) {
    for _ in 0..n {
        yield_now().await;
    }
}

async fn yield_bench(o: &Options) {
    let n = 3_000_000;
    let t = Instant::now();
    yields(n).await;
    o.per_op("yield_1", t.elapsed(), n);

    let (tasks, each) = (1000, 3000);
    let t = Instant::now();
    let handles: Vec<_> = (0..tasks).map(|_| tokio::spawn(yields(each))).collect();
    for h in handles {
        h.await.unwrap();
    }
    o.per_op("yield_1000", t.elapsed(), tasks * each);
}

async fn pingpong(o: &Options) {
    let n = 300_000;
    let (tx1, mut rx1) = mpsc::channel::<u64>(1);
    let (tx2, mut rx2) = mpsc::channel::<u64>(1);
    let t = Instant::now();
    let pong = tokio::spawn(async move {
        while let Some(v) = rx1.recv().await {
            tx2.send(v).await.unwrap();
        }
    });
    let ping = tokio::spawn(async move {
        for i in 0..n {
            tx1.send(i).await.unwrap();
            rx2.recv().await.unwrap();
        }
    });
    ping.await.unwrap();
    pong.await.unwrap();
    o.per_op("pingpong_chan", t.elapsed(), n);
}

async fn request_oneshot(o: &Options) {
    let n = 300_000;
    let (tx, mut rx) = mpsc::channel::<oneshot::Sender<u64>>(1);
    let t = Instant::now();
    let server = tokio::spawn(async move {
        while let Some(r) = rx.recv().await {
            let _ = r.send(1);
        }
    });
    let client = tokio::spawn(async move {
        for _ in 0..n {
            let (a, b) = oneshot::channel();
            tx.send(a).await.unwrap();
            b.await.unwrap();
        }
    });
    client.await.unwrap();
    server.await.unwrap();
    o.per_op("request_oneshot", t.elapsed(), n);
}

async fn mpsc_run(o: &Options, bench: &str, producers: u64, total: u64) {
    let (tx, mut rx) = mpsc::channel::<u64>(1024);
    let t = Instant::now();
    for _ in 0..producers {
        let tx = tx.clone();
        tokio::spawn(async move {
            for i in 0..total / producers {
                tx.send(i).await.unwrap();
            }
        });
    }
    drop(tx);
    let consumer = tokio::spawn(async move {
        let mut n = 0;
        while rx.recv().await.is_some() {
            n += 1;
        }
        n
    });
    assert_eq!(consumer.await.unwrap(), total);
    o.per_op(bench, t.elapsed(), total);
}

async fn mutex_run(o: &Options, bench: &str, tasks: u64, total: u64, yield_inside: bool) {
    let m = Arc::new(Mutex::new(0u64));
    let body = move |m: Arc<Mutex<u64>>| async move {
        for _ in 0..total / tasks {
            let mut g = m.lock().await;
            *g += 1;
            if yield_inside {
                yield_now().await;
            }
        }
    };
    let t = Instant::now();
    let handles: Vec<_> = (0..tasks).map(|_| tokio::spawn(body(m.clone()))).collect();
    for h in handles {
        h.await.unwrap();
    }
    assert_eq!(*m.lock().await, total / tasks * tasks);
    o.per_op(bench, t.elapsed(), total);
}

async fn sem_uncontended(o: &Options) {
    let n = 5_000_000;
    let s = Semaphore::new(1);
    let t = Instant::now();
    for _ in 0..n {
        let _permit = s.acquire().await.unwrap();
    }
    o.per_op("sem_uncontended", t.elapsed(), n);
}

async fn sem_yield(o: &Options) {
    let (tasks, total) = (8, 1_000_000);
    let s = Arc::new(Semaphore::new(2));
    let body = move |s: Arc<Semaphore>| async move {
        for _ in 0..total / tasks {
            let _permit = s.acquire().await.unwrap();
            yield_now().await;
        }
    };
    let t = Instant::now();
    let handles: Vec<_> = (0..tasks).map(|_| tokio::spawn(body(s.clone()))).collect();
    for h in handles {
        h.await.unwrap();
    }
    o.per_op("sem2_8tasks_yield", t.elapsed(), total);
}

fn noop_clone(_: *const ()) -> RawWaker {
    RawWaker::new(ptr::null(), &NOOP)
}

fn noop(_: *const ()) {}

static NOOP: RawWakerVTable = RawWakerVTable::new(noop_clone, noop, noop, noop);

/// `Waker::noop()` for compilers that do not have it yet.
fn noop_waker() -> Waker {
    // SAFETY: the functions ignore their pointer and own nothing.
    unsafe { Waker::from_raw(noop_clone(ptr::null())) }
}

/// A timer 10 to 60 s away, polled once, so armed.
fn armed_timer(i: u64, cx: &mut Context<'_>) -> Pin<Box<Sleep>> {
    let mut s = Box::pin(sleep(Duration::from_millis(10_000 + i * 7919 % 50_000)));
    let _ = s.as_mut().poll(cx);
    s
}

fn timer(o: &Options) {
    let n = 1_000_000;
    let waker = noop_waker();
    let mut cx = Context::from_waker(&waker);
    let mut v = Vec::with_capacity(n as usize);
    let t = Instant::now();
    for i in 0..n {
        v.push(armed_timer(i, &mut cx));
    }
    o.per_op("timer_insert_1M", t.elapsed(), n);
    let t = Instant::now();
    v.clear();
    o.per_op("timer_cancel_1M", t.elapsed(), n);
    let t = Instant::now();
    for i in 0..n {
        drop(armed_timer(i, &mut cx));
    }
    o.per_op("timer_insert_cancel_pair", t.elapsed(), n);
}

async fn sleeper() -> u64 {
    let due = Instant::now() + Duration::from_millis(10);
    sleep(Duration::from_millis(10)).await;
    Instant::now().saturating_duration_since(due).as_nanos() as u64
}

async fn sleep_round(o: &Options, round: &str) {
    let n = 100_000;
    let t = Instant::now();
    let handles: Vec<_> = (0..n).map(|_| tokio::spawn(sleeper())).collect();
    let mut late = Vec::with_capacity(n);
    for h in handles {
        late.push(h.await.unwrap());
    }
    let total = t.elapsed();
    late.sort_unstable();
    let us = |i: usize| late[i] as f64 / 1e3;
    o.emit(
        &format!("sleep100k_total{round}"),
        total.as_secs_f64() * 1e3,
        "ms",
    );
    o.emit(&format!("sleep100k_late_p50{round}"), us(n / 2), "us");
    o.emit(
        &format!("sleep100k_late_p99{round}"),
        us(n * 99 / 100),
        "us",
    );
    o.emit(&format!("sleep100k_late_max{round}"), us(n - 1), "us");
}

fn skynet(num: u64, size: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if size == 1 {
            return num;
        }
        let sub = size / 10;
        let handles: Vec<_> = (0..10)
            .map(|i| tokio::spawn(skynet(num + i * sub, sub)))
            .collect();
        let mut sum = 0;
        for h in handles {
            sum += h.await.unwrap();
        }
        sum
    })
}

async fn skynet_run(o: &Options) {
    let t = Instant::now();
    assert_eq!(skynet(0, 1_000_000).await, 499_999_500_000);
    o.emit("skynet_1M", t.elapsed().as_secs_f64() * 1e3, "ms");
}

fn rss_bytes() -> u64 {
    let s = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    s.split_whitespace()
        .nth(1)
        .and_then(|p| p.parse::<u64>().ok())
        .unwrap_or(0)
        * 4096
}

async fn mem(o: &Options) {
    let n = 1_000_000;
    let up = Arc::new(AtomicU64::new(0));
    let before = rss_bytes();
    for _ in 0..n {
        let up = up.clone();
        tokio::spawn(async move {
            up.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_secs(3600)).await;
        });
    }
    while up.load(Ordering::Relaxed) < n {
        sleep(Duration::from_millis(20)).await;
    }
    o.emit(
        "mem_per_sleeping_task",
        (rss_bytes() - before) as f64 / n as f64,
        "bytes",
    );
}

pub async fn run(o: &Options) -> Res<()> {
    match o.word(1) {
        "spawn_join" => spawn_join(o, "spawn_join", empty).await,
        "spawn_join_suspend" => spawn_join(o, "spawn_join_suspend", suspended).await,
        "fork_join" => fork_join(o, "fork_join_100k", empty).await,
        "fork_join_suspend" => fork_join(o, "fork_join_suspend", suspended).await,
        "yield" => yield_bench(o).await,
        "pingpong" => {
            pingpong(o).await;
            request_oneshot(o).await;
        }
        "channel" => {
            mpsc_run(o, "chan_1p1c", 1, 2_000_000).await;
            mpsc_run(o, "chan_4p1c", 4, 2_000_000).await;
        }
        "mutex" => {
            mutex_run(o, "mutex_uncontended", 1, 5_000_000, false).await;
            mutex_run(o, "mutex_8tasks", 8, 2_000_000, false).await;
            mutex_run(o, "mutex_8tasks_yield", 8, 1_000_000, true).await;
            sem_uncontended(o).await;
            sem_yield(o).await;
        }
        "timer" => timer(o),
        "udp" => crate::udp::run(o).await?,
        "sleep" => {
            sleep_round(o, "_cold").await;
            sleep_round(o, "").await;
        }
        "skynet" => skynet_run(o).await,
        "mem" => mem(o).await,
        bench => return Err(format!("unknown bench {bench}").into()),
    }
    Ok(())
}
