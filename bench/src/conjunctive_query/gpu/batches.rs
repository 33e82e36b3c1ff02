//! Batches of queries over an index on a device.

use std::hint;
use std::time::{Duration, Instant};

use trommel_kernels::cuda::{Device, DeviceError, Flights};
use trommel_kernels::inverted::ListNamer;

use super::ask::{Ask, Asked, SLOTS};
use crate::conjunctive_query::workload::Answers;
use crate::runner::turns::median;

/// Times of batches of one size.
pub(crate) struct Measured {
    /// Median from the submission of a batch to its answers, alone on the device.
    pub(crate) latency: Duration,
    /// Median of its kernels.
    pub(crate) kernel: Duration,
    /// A batch of several in flight.
    pub(crate) whole: Duration,
    /// Bytes of a batch over the bus, in the direction that has more.
    pub(crate) bytes: u64,
}

impl Asked<'_> {
    /// Measures batches of `batch` queries; all answers are checked, outside of the time.
    pub(crate) fn measure<P: Ask>(
        &self,
        device: &Device,
        batch: usize,
    ) -> Result<Measured, DeviceError> {
        let limits = P::limits(self.workload, batch);
        let mut flights = Flights::<P>::open(device, SLOTS, limits, 0)?;
        // Whole batches only, from the first query on.
        let [most, least] = P::BATCHES;
        let batches = (self.workload.queries() / batch).clamp(1, most);
        let alone = self.alone(&mut flights, batch, batches)?;
        self.in_a_row(&mut flights, batch, batches, true)?;
        // As many batches as fill the device for a while.
        let repeated = batches.max(least);
        let round = |_| self.in_a_row(&mut flights, batch, repeated, false);
        let times = (0..self.rounds).map(round).collect::<Result<Vec<_>, _>>()?;
        let whole = median(times) / u32::try_from(repeated).expect("batches are few");
        Ok(Measured { whole, ..alone })
    }

    /// Sends the batch with the number `number`; returns its first query.
    fn submit<P: Ask>(
        &self,
        flights: &mut Flights<P>,
        namer: &mut ListNamer,
        batch: usize,
        number: usize,
    ) -> Result<usize, DeviceError> {
        let batches = (self.workload.queries() / batch).clamp(1, P::BATCHES[0]);
        let begin = number % batches * batch;
        let end = self.workload.queries().min(begin + batch);
        let job = P::job(self, namer, self.workload.batch(begin, end));
        flights.submit(&job, 0)?;
        Ok(begin)
    }

    /// One batch at a time, each checked.
    fn alone<P: Ask>(
        &self,
        flights: &mut Flights<P>,
        batch: usize,
        batches: usize,
    ) -> Result<Measured, DeviceError> {
        let (mut latencies, mut kernels, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut namer = ListNamer::new();
        for number in 0..batches {
            let start = Instant::now();
            let begin = self.submit(flights, &mut namer, batch, number)?;
            while !flights.is_done()? {
                hint::spin_loop();
            }
            let (mut latency, mut answers) = (Duration::ZERO, Answers::default());
            let landed = flights.collect(|slot| {
                latency = start.elapsed();
                P::read(slot, &mut answers);
            })?;
            assert!(P::are_right(self.workload, begin, &answers), "wrong answers of {}", P::NAME);
            latencies.push(latency);
            kernels.push(landed.times.kernel);
            bytes += landed.bytes_to_device.max(landed.bytes_from_device);
        }
        Ok(Measured {
            latency: median(latencies),
            kernel: median(kernels),
            whole: Duration::ZERO,
            bytes: bytes / batches as u64,
        })
    }

    /// Several batches in flight; checked, or measured.
    fn in_a_row<P: Ask>(
        &self,
        flights: &mut Flights<P>,
        batch: usize,
        batches: usize,
        is_checked: bool,
    ) -> Result<Duration, DeviceError> {
        let (mut begins, mut namer) = (Vec::with_capacity(batches), ListNamer::new());
        let mut collected = 0;
        let start = Instant::now();
        while collected < batches {
            if begins.len() < batches && flights.has_room() {
                let begin = self.submit(flights, &mut namer, batch, begins.len())?;
                begins.push(begin);
                continue;
            }
            while !flights.is_done()? {
                hint::spin_loop();
            }
            let mut answers = Answers::default();
            flights.collect(|slot| {
                if is_checked {
                    P::read(slot, &mut answers);
                }
            })?;
            if is_checked {
                let is_right = P::are_right(self.workload, begins[collected], &answers);
                assert!(is_right, "wrong answers of {} in a row", P::NAME);
            }
            collected += 1;
        }
        Ok(start.elapsed())
    }
}
