//! Makes an operator of a producer, a kernel and a consumer.

use arrow_schema::SchemaRef;
use trommel_engine::operator::{Body, Fragment, Load, Operator, Part};

use super::consumer::{CollectPart, Consumer};
use super::feeder::Feeder;
use super::kernel::Kernel;
use super::kernel_part::KernelPart;
use super::limits::{CHUNKS_MAX, Wave};
use super::producer::{PreparePart, Producer};

/// An operator of three parts: `prepare`, the part that the kernel [names](Kernel::NAME), and
/// `collect`. `make` makes an empty chunk, and `outputs` are the schemas of the rows of
/// `consumer`.
///
/// # Panics
/// If [`Wave::chunks`] is out of range.
///
/// # Examples
/// See [the module](super#examples).
pub fn operator<P, K, C>(
    producer: P,
    kernel: K,
    consumer: C,
    make: impl FnMut() -> P::Chunk + Send + 'static,
    wave: Wave,
    outputs: Vec<SchemaRef>,
) -> Fragment
where
    P: Producer,
    K: Kernel<Chunk = P::Chunk>,
    C: Consumer<Chunk = P::Chunk>,
{
    let chunks = wave.chunks;
    assert!(
        (1..=CHUNKS_MAX).contains(&chunks),
        "invalid number of chunks {chunks}: expected 1 to {CHUNKS_MAX}"
    );
    let prepare = PreparePart::new(producer, Feeder::new(wave, make));
    let parts = vec![
        part("prepare", Load::Heavy, prepare),
        part(K::NAME, Load::Heavy, KernelPart::new(kernel, wave)),
        part("collect", Load::Light, CollectPart::new(consumer)),
    ];
    Fragment::new(parts, outputs)
}

fn part(name: &'static str, load: Load, operator: impl Operator + 'static) -> Part {
    Part { name: name.into(), load, body: Body::Operator(Box::new(operator)) }
}
