//! Connections to an agent's port, which any host on the network can open. Each has a deadline for its first admitted
//! call, and their number is limited per address and in total.
//!
//! At the limit, a new connection replaces one without an admitted call: of the address with most such connections,
//! first one that has sent nothing, then the oldest. Idle connections therefore cannot lock out a member, not even from
//! the member's own address, since a member sends at once and is admitted within milliseconds.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::Sleep;
use tokio_stream::Stream;
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::console;

/// Limits on number and duration of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum per address (IPv6: per 64-bit network).
    pub from_one: usize,
    /// Maximum in total.
    pub in_all: usize,
    /// Deadline for the first admitted call.
    pub patience: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { from_one: 64, in_all: 256, patience: Duration::from_secs(10) }
    }
}

/// Pause after the kernel refuses a connection, for example for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// Minimum interval between messages about closed connections.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Table of open connections.
#[derive(Debug)]
pub struct Connections {
    bounds: Bounds,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Connections in the order of arrival.
    held: BTreeMap<u64, Held>,
    next: u64,
    /// Connections closed since the last message.
    closed: u64,
    told: Option<Instant>,
}

#[derive(Debug)]
struct Held {
    of: IpAddr,
    peer: SocketAddr,
    standing: Arc<Standing>,
    /// Closes the connection when dropped.
    _open: oneshot::Sender<()>,
}

#[derive(Debug, Default)]
struct Standing {
    spoke: AtomicBool,
    admitted: AtomicBool,
}

impl Connections {
    /// Empty table.
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, table: Mutex::default() })
    }

    /// Marks the connection from `peer` as admitted, so that it may stay.
    pub fn admit(&self, peer: SocketAddr) {
        if let Some(held) = self.table().held.values().find(|held| held.peer == peer) {
            held.standing.admitted.store(true, Ordering::Relaxed);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a stream to the table; `None` if there is no space.
    fn enter(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) -> Option<Connection> {
        let of = network_of(peer.ip());
        let mut table = self.table();
        let full = if table.of(of).count() >= self.bounds.from_one {
            Some(of)
        } else if table.held.len() >= self.bounds.in_all {
            table.greediest()
        } else {
            None
        };
        if table.held.len() >= self.bounds.in_all || full.is_some() {
            table.tell(peer);
            let victim = table.victim(full?)?;
            table.held.remove(&victim);
        }
        let number = table.next;
        table.next += 1;
        let standing = Arc::new(Standing::default());
        let (open, closed) = oneshot::channel();
        table.held.insert(number, Held { of, peer, standing: Arc::clone(&standing), _open: open });
        Some(Connection {
            stream,
            standing,
            closed,
            deadline: Box::pin(tokio::time::sleep(self.bounds.patience)),
            ended: None,
            _place: Place { all: Arc::clone(self), number },
        })
    }
}

impl Table {
    fn of(&self, address: IpAddr) -> impl Iterator<Item = (&u64, &Held)> {
        self.held.iter().filter(move |(_, held)| held.of == address)
    }

    /// Address with the most connections without an admitted call.
    fn greediest(&self) -> Option<IpAddr> {
        let mut waiting: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for held in self.held.values().filter(|held| !held.standing.admitted.load(Ordering::Relaxed)) {
            *waiting.entry(held.of).or_default() += 1;
        }
        waiting.into_iter().max_by_key(|(_, count)| *count).map(|(of, _)| of)
    }

    fn victim(&self, of: IpAddr) -> Option<u64> {
        let waiting = self.of(of).filter(|(_, held)| !held.standing.admitted.load(Ordering::Relaxed));
        waiting
            .min_by_key(|(number, held)| (held.standing.spoke.load(Ordering::Relaxed), **number))
            .map(|(number, _)| *number)
    }

    fn tell(&mut self, newest: SocketAddr) {
        self.closed += 1;
        if self.told.is_some_and(|told| told.elapsed() < BETWEEN_LINES) {
            return;
        }
        console::complain(&format!(
            "too many connections, the newest from {}; {} of those that had made no call were closed",
            newest.ip(),
            self.closed
        ));
        (self.told, self.closed) = (Some(Instant::now()), 0);
    }
}

/// The holder of a 64-bit network controls all its addresses.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => Ipv6Addr::from(u128::from(six) & !u128::from(u64::MAX)).into(),
        four @ IpAddr::V4(_) => four,
    }
}

#[derive(Debug)]
struct Place {
    all: Arc<Connections>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.table().held.remove(&self.number);
    }
}

/// Stream that fails at its deadline or when it is replaced.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    standing: Arc<Standing>,
    closed: oneshot::Receiver<()>,
    deadline: Pin<Box<Sleep>>,
    ended: Option<io::ErrorKind>,
    _place: Place,
}

impl Connection {
    fn alive(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.standing.admitted.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.ended.is_none() {
            self.ended = if Pin::new(&mut self.closed).poll(context).is_ready() {
                Some(io::ErrorKind::ConnectionAborted)
            } else if self.deadline.as_mut().poll(context).is_ready() {
                Some(io::ErrorKind::TimedOut)
            } else {
                None
            };
        }
        self.ended.map_or(Ok(()), |kind| Err(kind.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.alive(context)?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.standing.spoke.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.alive(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.alive(context)?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.alive(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

/// Incoming connections; the stream never ends, whatever the kernel refuses.
#[derive(Debug)]
pub struct Incoming {
    listener: TcpListener,
    all: Arc<Connections>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Incoming {
    /// Connections to a port.
    pub const fn new(listener: TcpListener, all: Arc<Connections>) -> Self {
        Self { listener, all, pause: None }
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            match ready!(self.listener.poll_accept(context)) {
                Ok((stream, peer)) => {
                    if let Some(entered) = self.all.enter(stream, peer) {
                        return Poll::Ready(Some(Ok(entered)));
                    }
                }
                Err(_) => self.pause = Some(Box::pin(tokio::time::sleep(PAUSE))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_stream::StreamExt;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    async fn port(bounds: Bounds) -> (Incoming, Arc<Connections>, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let all = Connections::new(bounds);
        (Incoming::new(listener, Arc::clone(&all)), all, address)
    }

    #[test]
    fn who_says_nothing_gives_way_first_and_who_was_admitted_never() {
        runtime().block_on(async {
            let bounds = Bounds { from_one: 3, in_all: 9, patience: Duration::from_secs(60) };
            let (mut incoming, all, address) = port(bounds).await;
            let mut ends = Vec::new();
            let mut streams = Vec::new();
            for _ in 0..3 {
                ends.push(TcpStream::connect(address).await.expect("there is a place"));
                streams.push(incoming.next().await.expect("it goes on").expect("it is taken"));
            }
            all.admit(ends[0].local_addr().expect("it is bound"));
            ends[1].write_all(b"?").await.expect("it is open");
            let mut byte = [0; 1];
            streams[1].read_exact(&mut byte).await.expect("it came");
            ends.push(TcpStream::connect(address).await.expect("the kernel takes it"));
            streams.push(incoming.next().await.expect("it goes on").expect("it is taken"));
            // The third connection had sent nothing.
            let gone = streams[2].read(&mut byte).await.map_err(|error| error.kind());
            assert_eq!(gone, Err(io::ErrorKind::ConnectionAborted));
            ends[0].write_all(b"!").await.expect("it is open");
            streams[0].read_exact(&mut byte).await.expect("whoever was admitted stays");
            assert_eq!(all.table().held.len(), 3);
            drop(streams);
            assert_eq!(all.table().held.len(), 0);
        });
    }

    #[test]
    fn where_all_were_admitted_the_new_one_is_closed() {
        runtime().block_on(async {
            let bounds = Bounds { from_one: 2, in_all: 2, patience: Duration::from_secs(60) };
            let (mut incoming, all, address) = port(bounds).await;
            let mut held = Vec::new();
            for _ in 0..2 {
                let end = TcpStream::connect(address).await.expect("there is a place");
                held.push((incoming.next().await, end));
                all.admit(held.last().expect("one").1.local_addr().expect("it is bound"));
            }
            let mut refused = TcpStream::connect(address).await.expect("the kernel takes it");
            let accepting = async { incoming.next().await };
            let reading = async { refused.read(&mut [0; 1]).await.unwrap_or(0) };
            tokio::select! {
                _ = accepting => panic!("a third was taken"),
                read = reading => assert_eq!(read, 0),
            }
        });
    }

    #[test]
    fn the_deadline_ends_who_is_not_admitted() {
        runtime().block_on(async {
            let bounds = Bounds { patience: Duration::from_millis(50), ..Bounds::default() };
            let (mut incoming, _, address) = port(bounds).await;
            let _end = TcpStream::connect(address).await.expect("there is a place");
            let mut stream = incoming.next().await.expect("it goes on").expect("it is taken");
            let ended = stream.read(&mut [0; 1]).await.map_err(|error| error.kind());
            assert_eq!(ended, Err(io::ErrorKind::TimedOut));
        });
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let of = |text: &str| network_of(text.parse().expect("an address"));
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2::9"));
        assert_ne!(of("2001:db8:1:2::9"), of("2001:db8:1:3::9"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.2"), of("10.0.0.1"));
    }
}
