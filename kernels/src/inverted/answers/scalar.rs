//! The reference: each id of the shortest list is searched in all other lists, as the threads of
//! the paper do (§II).

use super::Answer;
use crate::inverted::plan::Steps;
use crate::inverted::scratch::Buffers;
use crate::simd::Scalar;

impl Answer for Scalar {
    #[inline(always)]
    fn is_dense(self, _: Steps<'_>) -> bool {
        false
    }

    #[inline(always)]
    fn count(self, steps: Steps<'_>, buffers: &mut Buffers) -> u32 {
        let mut found = std::mem::take(&mut buffers.found);
        found.clear();
        self.find(steps, buffers, &mut found);
        let count = u32::try_from(found.len()).expect("at most the documents of a segment");
        buffers.found = found;
        count
    }

    #[inline(always)]
    fn find(self, steps: Steps<'_>, _: &mut Buffers, found: &mut Vec<u32>) {
        let Some((first, others)) = steps.split() else { return };
        let begin = found.len();
        first.decode(found);
        let mut end = begin;
        for at in begin..found.len() {
            let id = found[at];
            if others.iter().all(|&key| steps.list(key).contains(id)) {
                found[end] = id;
                end += 1;
            }
        }
        found.truncate(end);
    }
}
