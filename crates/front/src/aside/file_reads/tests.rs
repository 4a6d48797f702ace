use std::io::Write;

use super::*;
use crate::tests::openers::{on_the_fronts_thread, wait_for};

/// 1 MiB, in which each place differs from its neighbours.
fn content() -> Vec<u8> {
    (0..1 << 20).map(|index: u32| (index % 251) as u8).collect()
}

fn file_with(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

/// One of a file system that does not tell what is in memory, as NFS and FUSE.
fn file_elsewhere(content: &[u8], pool: &PoolShare) -> Arc<ServedFile> {
    let file = ServedFile::handed_over(file_with(content), Backing::Unknown, pool);
    file.medium.set(Medium::Elsewhere).unwrap();
    Arc::new(file)
}

/// What a client is sent that takes at most `most` bytes at a time.
async fn send(file: &Arc<ServedFile>, most: usize) -> io::Result<Vec<u8>> {
    let (mut ahead, mut sent) = (Ahead::default(), Vec::new());
    let whole = file.metadata()?.len();
    while (sent.len() as u64) < whole {
        let offset = sent.len() as u64;
        let length = std::future::poll_fn(|context| {
            let next = ready!(ahead.poll_next(context, file, offset, whole - offset))?;
            Poll::Ready(io::Result::Ok(match next {
                Next::Bytes(bytes) => {
                    sent.extend_from_slice(&bytes[..bytes.len().min(most)]);
                    bytes.len().min(most)
                }
                Next::FromCache(length) => {
                    let mut bytes = vec![0; length.min(most)];
                    file.read_exact_at(&mut bytes, offset)?;
                    sent.extend_from_slice(&bytes);
                    bytes.len()
                }
            }))
        })
        .await?;
        ahead.advance(length);
    }
    Ok(sent)
}

/// The event loop's first look.
async fn is_pending(ahead: &mut Ahead, file: &Arc<ServedFile>) -> bool {
    std::future::poll_fn(|context| Poll::Ready(ahead.poll_next(context, file, 0, 1000).is_pending())).await
}

#[test]
fn every_file_is_sent_as_it_is() {
    on_the_fronts_thread(async {
        let (content, pool) = (content(), PoolShare::of_reads());
        let mut files = vec![
            Arc::new(ServedFile::opened(file_with(&content), &pool)),
            Arc::new(ServedFile::handed_over(file_with(&content), Backing::BlockDevice, &pool)),
            file_elsewhere(&content, &pool),
        ];
        for medium in [Medium::Memory, Medium::SilentDisk] {
            let file = ServedFile::handed_over(file_with(&content), Backing::Unknown, &pool);
            file.medium.set(medium).unwrap();
            files.push(Arc::new(file));
        }
        for file in files {
            for most in [usize::MAX, 100_000, 4096] {
                assert!(send(&file, most).await.unwrap() == content, "{file:?}");
            }
        }
    });
}

#[test]
fn what_is_in_memory_is_sent_at_once() {
    on_the_fronts_thread(async {
        let pool = PoolShare::of_reads();
        let file = Arc::new(ServedFile::opened(file_with(&content()), &pool));
        let mut pieces = 0;
        for _ in 0..2 {
            let mut ahead = Ahead::default();
            pieces += u32::from(!is_pending(&mut ahead, &file).await);
        }
        let tells = !matches!(file.medium.get(), Some(Medium::SilentDisk | Medium::Elsewhere));
        assert_eq!(pieces, if tells { 2 } else { 0 }, "{file:?}");
    });
}

#[test]
fn what_is_not_in_memory_is_read_by_another_thread() {
    on_the_fronts_thread(async {
        let (content, pool) = (content(), PoolShare::of_reads());
        let file = Arc::new(ServedFile::opened(file_with(&content), &pool));
        file.sync_all().unwrap();
        rustix::fs::fadvise(&**file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        if is_cached(&file, 500_000) != Some(false) {
            return; // this file system has no page cache, or does not tell
        }
        // Pages that the kernel is still busy with stay where they are.
        wait_for("a file that is not in memory", async || {
            file.cached_until_ms.store(0, Ordering::Relaxed);
            rustix::fs::fadvise(&**file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            is_pending(&mut Ahead::default(), &file).await
        })
        .await;
        assert!(send(&file, usize::MAX).await.unwrap() == content);
    });
}

#[test]
fn a_file_system_that_does_not_answer_takes_few_threads() {
    on_the_fronts_thread(async {
        let (pool, others) = (PoolShare::of_reads(), PoolShare::of_reads());
        let mut stuck = Vec::new();
        for _ in 0..4 {
            stuck.push(pool.take().await);
        }
        let content = content();
        let (file, other) = (file_elsewhere(&content, &pool), file_elsewhere(&content, &others));
        let mut ahead = Ahead::default();
        assert!(is_pending(&mut ahead, &file).await);
        assert!(send(&other, usize::MAX).await.unwrap() == content, "another application's");
        assert!(is_pending(&mut ahead, &file).await);
        stuck.pop();
        wait_for("its pool", async || !is_pending(&mut ahead, &file).await).await;
    });
}

#[test]
fn a_client_that_takes_nothing_has_no_buffer() {
    on_the_fronts_thread(async {
        let file = file_elsewhere(&content(), &PoolShare::of_reads());
        let mut ahead = Ahead::default();
        wait_for("the bytes", async || !is_pending(&mut ahead, &file).await).await;
        assert!(matches!(ahead.0, State::Read { .. }));
        ahead.forget();
        assert!(matches!(ahead.0, State::Unknown));
    });
}

#[test]
fn a_file_that_becomes_shorter_is_an_error() {
    on_the_fronts_thread(async {
        for medium in [Medium::SilentDisk, Medium::Elsewhere] {
            let file = ServedFile::handed_over(file_with(b"short"), Backing::Unknown, &PoolShare::of_reads());
            file.medium.set(medium).unwrap();
            let error = read(Arc::new(file), 0, 1000).await;
            let error = match error {
                Ok(Piece::Read(bytes)) if bytes == b"short" => continue,
                other => other.unwrap_err(),
            };
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{medium:?}");
        }
    });
}

#[test]
fn what_the_kernel_makes_up_is_not_sent() {
    on_the_fronts_thread(async {
        let file = File::open("/proc/self/environ").unwrap();
        let backing = highball_tenant::handed_over(&file).unwrap();
        let file = Arc::new(ServedFile::handed_over(file, backing, &PoolShare::of_reads()));
        assert!(!file.is_ready(0, 1, now_ms()));
        let error = read(file, 0, 1).await.unwrap_err();
        assert!(error.to_string().contains("procfs"), "{error}");
    });
}

#[test]
fn a_file_elsewhere_is_closed_by_another_thread() {
    on_the_fronts_thread(async {
        let pool = PoolShare::of_reads();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let file = ServedFile::handed_over(File::from(writer), Backing::Unknown, &pool);
        file.medium.set(Medium::Elsewhere).unwrap();
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(pool.take().await);
        }
        rustix::io::ioctl_fionbio(&reader, true).unwrap();
        drop(file);
        tokio::task::yield_now().await;
        let is_closed = || rustix::io::read(&reader, &mut [0]).is_ok();
        assert!(!is_closed(), "not here");
        drop(held);
        wait_for("its end", async || is_closed()).await;
    });
}
