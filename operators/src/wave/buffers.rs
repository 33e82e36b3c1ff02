//! The chunks of an operator, which its first part fills.

/// A fixed number of chunks: made when they are first needed, then used again and again.
#[derive(Debug)]
pub struct Buffers<C> {
    free: Vec<Box<C>>,
    chunks: usize,
    unmade: usize,
}

impl<C> Buffers<C> {
    /// So many chunks.
    #[must_use]
    pub fn new(chunks: usize) -> Self {
        Self { free: Vec::with_capacity(chunks), chunks, unmade: chunks }
    }

    /// A chunk to fill: one that was used before, as it was given back, or a new one; `None` when
    /// all are under way, and a part then waits for its reply
    /// ([`Flow::AwaitReply`](trommel_engine::operator::Flow::AwaitReply)).
    pub fn take(&mut self, make: impl FnOnce() -> C) -> Option<Box<C>> {
        let used = self.free.pop();
        if used.is_none() && self.unmade > 0 {
            self.unmade -= 1;
            return Some(Box::new(make()));
        }
        used
    }

    /// How many have been made.
    #[must_use]
    pub fn made(&self) -> usize {
        self.chunks - self.unmade
    }

    /// Whether none is under way.
    #[must_use]
    pub fn are_home(&self) -> bool {
        self.free.len() + self.unmade == self.chunks
    }

    /// Takes a chunk back.
    pub fn give_back(&mut self, chunk: Box<C>) {
        self.free.push(chunk);
    }
}
