// SPDX-License-Identifier: MIT
//! File work: random 4 KiB reads at depth 32, copies in chunks of 256 KiB.
use crate::{Options, Res};
use std::alloc::{alloc, dealloc, Layout};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

const BLOCK: usize = 4096;
const CHUNK: usize = 256 * 1024;
const DEPTH: u64 = 32;
const COPIERS: u64 = 8;
/// On x86-64; the standard library has no name for it.
const O_DIRECT: i32 = 0x4000;

struct Aligned(*mut u8);

// SAFETY: the allocation belongs to this value alone.
unsafe impl Send for Aligned {}

impl Aligned {
    fn layout() -> Layout {
        Layout::from_size_align(BLOCK, BLOCK).unwrap()
    }

    fn new() -> Self {
        // SAFETY: the layout is not empty.
        Aligned(unsafe { alloc(Self::layout()) })
    }

    fn slice(&mut self) -> &mut [u8] {
        // SAFETY: allocated with this size, borrowed with self.
        unsafe { std::slice::from_raw_parts_mut(self.0, BLOCK) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.0, Self::layout()) }
    }
}

fn xorshift(s: &mut u64) -> u64 {
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    *s
}

fn seed(i: u64) -> u64 {
    0x9e3779b97f4a7c15 ^ (i + 1)
}

/// Reads with pread in the blocking pool, until `end`.
async fn pool_reader(f: Arc<std::fs::File>, i: u64, blocks: u64, end: Instant) -> u64 {
    let (mut seed, mut n) = (seed(i), 0);
    let mut buf = Aligned::new();
    while Instant::now() < end {
        let off = xorshift(&mut seed) % blocks * BLOCK as u64;
        let f = f.clone();
        buf = spawn_blocking(move || {
            f.read_exact_at(buf.slice(), off).unwrap();
            buf
        })
        .await
        .unwrap();
        n += 1;
    }
    n
}

/// Reads with tokio::fs, a seek and a read each, until `end`.
async fn fs_reader(path: String, i: u64, blocks: u64, end: Instant) -> u64 {
    let (mut seed, mut n) = (seed(i), 0);
    let mut f = tokio::fs::File::open(path).await.unwrap();
    let mut buf = vec![0u8; BLOCK];
    while Instant::now() < end {
        let off = xorshift(&mut seed) % blocks * BLOCK as u64;
        f.seek(std::io::SeekFrom::Start(off)).await.unwrap();
        f.read_exact(&mut buf).await.unwrap();
        n += 1;
    }
    n
}

async fn random_pool(o: &Options, bench: &str, flags: i32, blocks: u64) -> Res<()> {
    let f = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(&o.path)?;
    let f = Arc::new(f);
    let t = Instant::now();
    let end = t + Duration::from_secs_f64(o.secs);
    let mut handles = Vec::new();
    for i in 0..DEPTH {
        handles.push(tokio::spawn(pool_reader(f.clone(), i, blocks, end)));
    }
    let mut n = 0;
    for h in handles {
        n += h.await?;
    }
    o.emit(bench, n as f64 / t.elapsed().as_secs_f64(), "iops");
    Ok(())
}

async fn random_fs(o: &Options, blocks: u64) -> Res<()> {
    let t = Instant::now();
    let end = t + Duration::from_secs_f64(o.secs);
    let mut handles = Vec::new();
    for i in 0..DEPTH {
        handles.push(tokio::spawn(fs_reader(o.path.clone(), i, blocks, end)));
    }
    let mut n = 0;
    for h in handles {
        n += h.await?;
    }
    o.emit("rand_cached", n as f64 / t.elapsed().as_secs_f64(), "iops");
    Ok(())
}

async fn read_chunks(mut r: tokio::fs::File, tx: mpsc::Sender<Vec<u8>>) {
    loop {
        let mut b = vec![0u8; CHUNK];
        let mut k = 0;
        while k < b.len() {
            let n = r.read(&mut b[k..]).await.unwrap();
            if n == 0 {
                break;
            }
            k += n;
        }
        if k == 0 {
            return;
        }
        b.truncate(k);
        tx.send(b).await.unwrap();
    }
}

fn report_copy(o: &Options, len: u64, copied: Duration, synced: Duration) {
    let rate = |d: Duration| len as f64 / d.as_secs_f64() / 1e6;
    o.emit("copy", rate(copied), "MB/s");
    o.emit("copy_synced", rate(synced), "MB/s");
}

/// Reader task, a channel of 8, writer task.
async fn copy_fs(o: &Options, len: u64) -> Res<()> {
    let t = Instant::now();
    let r = tokio::fs::File::open(&o.path).await?;
    let mut w = tokio::fs::File::create(&o.dst).await?;
    let (tx, mut rx) = mpsc::channel::<Vec<u8>>(8);
    let reader = tokio::spawn(read_chunks(r, tx));
    let mut total = 0;
    while let Some(b) = rx.recv().await {
        w.write_all(&b).await?;
        total += b.len() as u64;
    }
    w.flush().await?;
    reader.await?;
    let copied = t.elapsed();
    w.sync_data().await?;
    assert_eq!(total, len);
    report_copy(o, len, copied, t.elapsed());
    Ok(())
}

/// Copies chunks with pread and pwrite in the blocking pool.
async fn pool_copier(r: Arc<std::fs::File>, w: Arc<std::fs::File>, next: Arc<AtomicU64>, len: u64) {
    let mut b = vec![0u8; CHUNK];
    loop {
        let off = next.fetch_add(CHUNK as u64, Ordering::Relaxed);
        if off >= len {
            return;
        }
        let k = ((len - off) as usize).min(CHUNK);
        let (r, w) = (r.clone(), w.clone());
        b = spawn_blocking(move || {
            r.read_exact_at(&mut b[..k], off).unwrap();
            b
        })
        .await
        .unwrap();
        b = spawn_blocking(move || {
            w.write_all_at(&b[..k], off).unwrap();
            b
        })
        .await
        .unwrap();
    }
}

async fn copy_pool(o: &Options, len: u64) -> Res<()> {
    let t = Instant::now();
    let r = Arc::new(std::fs::File::open(&o.path)?);
    let w = Arc::new(std::fs::File::create(&o.dst)?);
    let next = Arc::new(AtomicU64::new(0));
    let mut handles = Vec::new();
    for _ in 0..COPIERS {
        handles.push(tokio::spawn(pool_copier(
            r.clone(),
            w.clone(),
            next.clone(),
            len,
        )));
    }
    for h in handles {
        h.await?;
    }
    let copied = t.elapsed();
    w.sync_data()?;
    report_copy(o, len, copied, t.elapsed());
    Ok(())
}

pub async fn run(o: &Options) -> Res<()> {
    let len = std::fs::metadata(&o.path)?.len();
    let blocks = len / BLOCK as u64;
    match o.word(1) {
        "rand_cached" => random_pool(o, "rand_cached", 0, blocks).await,
        "rand_direct" => random_pool(o, "rand_direct", O_DIRECT, blocks).await,
        "rand_fs" => random_fs(o, blocks).await,
        "copy_fs" => copy_fs(o, len).await,
        "copy_pool" => copy_pool(o, len).await,
        case => Err(format!("unknown case {case}").into()),
    }
}
