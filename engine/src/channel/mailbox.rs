//! A bounded queue of control messages with many senders, which closes with its reader.
//!
//! A caller waits for the answer to its message, so no message may stay unread. When the reader
//! ends, the messages in the queue are dropped, and later messages are returned to their senders. A
//! channel of crossbeam keeps unread messages as long as a sender lives, and the caller would wait
//! for ever. Messages are rare, so each message locks the queue; the reader checks one flag while
//! there are no messages.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::sync::lock;

struct MailboxQueue<T> {
    /// `None` once the reader has ended.
    messages: Mutex<Option<VecDeque<T>>>,
    has_mail: AtomicBool,
    limit: usize,
}

impl<T> MailboxQueue<T> {
    fn lock(&self) -> MutexGuard<'_, Option<VecDeque<T>>> {
        lock(&self.messages)
    }
}

/// The reading end.
pub(crate) struct Mailbox<T>(Arc<MailboxQueue<T>>);

/// A sending end.
pub(crate) struct MailboxSender<T>(Arc<MailboxQueue<T>>);

impl<T> Clone for MailboxSender<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The reason why a mailbox returns a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused<T> {
    /// The mailbox is full.
    Full(T),
    /// The reader has ended.
    Closed(T),
}

/// A mailbox for up to `limit` waiting messages, and a sender into it.
pub(crate) fn mailbox<T>(limit: usize) -> (MailboxSender<T>, Mailbox<T>) {
    let queue = Arc::new(MailboxQueue {
        messages: Mutex::new(Some(VecDeque::new())),
        has_mail: AtomicBool::new(false),
        limit,
    });
    (MailboxSender(Arc::clone(&queue)), Mailbox(queue))
}

impl<T> MailboxSender<T> {
    /// Puts a message into the mailbox; the caller then rings the reader's bell. In a full mailbox,
    /// messages that are no longer `wanted` make room.
    pub(crate) fn put(&self, message: T, wanted: impl Fn(&T) -> bool) -> Result<(), Refused<T>> {
        let mut unwanted = VecDeque::new();
        let mut guard = self.0.lock();
        let Some(queue) = &mut *guard else { return Err(Refused::Closed(message)) };
        if queue.len() >= self.0.limit {
            let (kept, dropped) = queue.drain(..).partition(wanted);
            (*queue, unwanted) = (kept, dropped);
        }
        if queue.len() >= self.0.limit {
            return Err(Refused::Full(message));
        }
        queue.push_back(message);
        // Relaxed: the lock orders the message, and the doorbell orders the flag against a wait.
        self.0.has_mail.store(true, Ordering::Relaxed);
        drop(guard);
        // Dropped outside of the lock: a message may do anything then.
        drop(unwanted);
        Ok(())
    }
}

impl<T> Mailbox<T> {
    pub(crate) fn is_empty(&self) -> bool {
        !self.0.has_mail.load(Ordering::Relaxed)
    }

    /// Moves all messages to the end of `target`.
    pub(crate) fn take_all(&self, target: &mut VecDeque<T>) {
        let mut guard = self.0.lock();
        if let Some(queue) = &mut *guard {
            target.append(queue);
        }
        self.0.has_mail.store(false, Ordering::Relaxed);
    }
}

impl<T> Drop for Mailbox<T> {
    fn drop(&mut self) {
        // Dropped outside of the lock: a message may do anything then.
        let unread = self.0.lock().take();
        drop(unread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any<T>(_: &T) -> bool {
        true
    }

    #[test]
    fn messages_come_out_in_order_up_to_the_limit() {
        let (sender, mailbox) = mailbox(2);
        assert!(mailbox.is_empty());
        assert_eq!((sender.put(1, any), sender.put(2, any)), (Ok(()), Ok(())));
        assert_eq!(sender.clone().put(3, any), Err(Refused::Full(3)));
        assert!(!mailbox.is_empty());
        let mut taken = VecDeque::from([0]);
        mailbox.take_all(&mut taken);
        assert_eq!(taken, [0, 1, 2]);
        assert!(mailbox.is_empty());
        assert_eq!(sender.put(3, any), Ok(()));
    }

    #[test]
    fn unwanted_messages_make_room() {
        let (sender, mailbox) = mailbox(3);
        for message in 1..=3 {
            sender.put(message, any).unwrap();
        }
        assert_eq!(sender.put(4, |message| message % 2 == 1), Ok(()));
        let mut taken = VecDeque::new();
        mailbox.take_all(&mut taken);
        assert_eq!(taken, [1, 3, 4]);
    }

    #[test]
    fn unread_messages_are_dropped_with_the_reader_and_later_ones_returned() {
        let (sender, mailbox) = mailbox(2);
        let message = Arc::new(());
        sender.put(Arc::clone(&message), any).unwrap();
        drop(mailbox);
        assert_eq!(Arc::strong_count(&message), 1);
        assert_eq!(sender.put(Arc::clone(&message), any), Err(Refused::Closed(message)));
    }
}
