//! A queue for items that wait until a service has started or is no longer busy.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// A bounded queue.
#[derive(Debug)]
pub(crate) struct BoundedQueue<T> {
    capacity: usize,
    queue: Mutex<VecDeque<T>>,
}

impl<T> BoundedQueue<T> {
    /// A queue with this capacity.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, queue: Mutex::default() }
    }

    /// Appends an item; returns it if the queue is full.
    pub(crate) fn push(&self, one: T) -> Result<(), T> {
        let mut queue = self.queue.lock();
        if queue.len() >= self.capacity {
            return Err(one);
        }
        queue.push_back(one);
        Ok(())
    }

    /// The oldest item.
    pub(crate) fn pop(&self) -> Option<T> {
        self.queue.lock().pop_front()
    }

    /// Puts a popped item back to the front. It always fits, even if the queue was filled meanwhile.
    pub(crate) fn put_back(&self, one: T) {
        self.queue.lock().push_front(one);
    }

    /// Drops all items except these.
    pub(crate) fn retain(&self, wanted: impl Fn(&T) -> bool) {
        self.queue.lock().retain(wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_too_many_is_given_back_until_there_is_room_again() {
        let waiting = BoundedQueue::new(2);
        assert_eq!((waiting.push(1), waiting.push(2), waiting.push(3)), (Ok(()), Ok(()), Err(3)));
        assert_eq!(waiting.pop(), Some(1));
        assert_eq!(waiting.push(3), Ok(()));
        waiting.put_back(1);
        assert_eq!(waiting.push(4), Err(4), "what was put back counts");
        waiting.retain(|one| *one != 2);
        assert_eq!((waiting.pop(), waiting.pop(), waiting.pop()), (Some(1), Some(3), None));
    }
}
