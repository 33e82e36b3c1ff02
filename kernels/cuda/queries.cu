// queries.cu - the answers to batches of conjunctive queries over lists on the device. Contract:
// kernels/src/cuda/queries.
//
//   count_first, count_listed    the number of documents of each query
//   find_first, find_listed      the same by unit, with a bit for each id that is in all lists
//   find_totals, find_offsets    places of the documents of each unit and each query
//   find_documents               the documents
//   count_blocks                 the number of documents, by a block a query as in the paper
//
// A warp takes a unit: see queries.cuh. Reads 16 B a term and a unit; 2 or 4 B an id of the source,
// and for each of them and each further list that is searched a sector of a bitmap, or two of a
// directory and its halves. Writes 4 B a query; of documents also 36 B a unit and 4 B a document.
#include "block_scan.cuh"
#include "queries.cuh"

static_assert(QUERY_THREADS == SCAN_THREADS, "a scan of the block of a query");

// The documents of a batch. The same layout: kernels/src/cuda/queries/documents.rs.
struct Documents {
    u32* hits;    // UNIT_GROUPS words of bits for each unit of work
    Listed* listed; // of each query
    u32* tails;   // of each query: documents of its tail
    u32* totals;  // of each query
    u32* offsets; // of the documents of each query, and the end; or UNFINISHED
    u32* documents;
    u32 room;
};

// The offset of the end of a query whose documents have no room.
constexpr u32 UNFINISHED = ~0u;

__device__ inline u32 warp_of_grid() { return thread_of_grid() / WARP; }
__device__ inline u32 warps_of_grid() { return threads_of_grid() / WARP; }

// The unit after unit `i` that the warp of a query takes: the first one, then the tail.
__device__ inline u32 next_own(u32 i, const Listed& listed) {
    return i == 0 ? listed.count + 1 : i + 1;
}

// Grid: any. Block: 256; the compiler would take registers for 4 of them on a multiprocessor, and
// spill for 6. Shared: memory of 8 warps. Barriers of warps only: 2 a query, 1 a unit, and for each
// list 1 and 1 for 32 ids. One atomic addition for a query with further units.
extern "C" __global__ void __launch_bounds__(QUERY_THREADS, 5) count_first(Queries queries) {
    DYNAMIC_SHARED(WarpMemory, memories);
    WarpMemory& memory = memories[threadIdx.x / WARP];
    for (u32 query = warp_of_grid(); query < queries.query_count; query += warps_of_grid()) {
        u32 count = 0;
        if (order_terms(queries, query)) {
            const Query own(queries, query, memory);
            if (own.lists == 1) {
                count = own.source.len;
            } else {
                const Listed listed = list_units(queries, query, own);
                for (u32 i = 0; i <= own.units(); i = next_own(i, listed)) {
                    count += search_unit<false>(queries.segment, own, i * own.unit, memory);
                }
            }
        }
        if (lane_of_warp() == 0) queries.found[query] = count;
    }
}

// Grid: any. Block: 256. Shared: memory of 8 warps. Barriers of warps only: 3 a unit, and for each
// list 1 and 1 for 32 ids. One atomic addition for a unit with documents.
extern "C" __global__ void __launch_bounds__(QUERY_THREADS) count_listed(Queries queries) {
    DYNAMIC_SHARED(WarpMemory, memories);
    WarpMemory& memory = memories[threadIdx.x / WARP];
    const u32 units = listed_units(queries);
    for (u32 i = warp_of_grid(); i < units; i += warps_of_grid()) {
        const Unit unit = queries.units[i];
        const Query own(queries, unit.query, memory);
        const u32 count = search_unit<false>(queries.segment, own, unit.begin, memory);
        if (lane_of_warp() == 0 && count) atomicAdd(&queries.found[unit.query], count);
    }
}

// Keeps the bits of the ids of a unit of work. All lanes of a warp call it.
__device__ inline void keep_hits(const Documents& documents, u64 work, const Query& own,
                                 const WarpMemory& memory) {
    if (own.source.form == BITS || own.lists == 1) return;
    const u32 lane = lane_of_warp();
    // A lane clears the bits that it reads here.
    if (lane < UNIT_GROUPS) documents.hits[work * UNIT_GROUPS + lane] = memory.hits[lane];
}

// As count_first, with 1 barrier more a unit; 4 blocks on a multiprocessor, since the compiler
// would spill for 5.
extern "C" __global__ void __launch_bounds__(QUERY_THREADS, 4)
    find_first(Queries queries, Documents documents) {
    DYNAMIC_SHARED(WarpMemory, memories);
    WarpMemory& memory = memories[threadIdx.x / WARP];
    for (u32 query = warp_of_grid(); query < queries.query_count; query += warps_of_grid()) {
        u32 count = 0, tail = 0;
        Listed listed = {0, 0};
        if (order_terms(queries, query)) {
            const Query own(queries, query, memory);
            listed = list_units(queries, query, own);
            for (u32 i = 0; i <= own.units(); i = next_own(i, listed)) {
                const u32 found = search_unit<true>(queries.segment, own, i * own.unit, memory);
                if (i == 0) keep_hits(documents, query, own, memory);
                (i == 0 ? count : tail) += found;
            }
        }
        if (lane_of_warp() == 0) {
            queries.found[query] = count;
            documents.tails[query] = tail;
            documents.listed[query] = listed;
        }
    }
}

// As count_listed, with 1 barrier more a unit and without atomics.
extern "C" __global__ void __launch_bounds__(QUERY_THREADS)
    find_listed(Queries queries, Documents documents) {
    DYNAMIC_SHARED(WarpMemory, memories);
    WarpMemory& memory = memories[threadIdx.x / WARP];
    const u32 units = listed_units(queries);
    for (u32 i = warp_of_grid(); i < units; i += warps_of_grid()) {
        const Unit unit = queries.units[i];
        const Query own(queries, unit.query, memory);
        const u64 work = static_cast<u64>(queries.query_count) + i;
        const u32 count = search_unit<true>(queries.segment, own, unit.begin, memory);
        keep_hits(documents, work, own, memory);
        if (lane_of_warp() == 0) queries.found[work] = count;
    }
}

// The sum over the lanes up to the calling one.
template <class T>
__device__ inline T sum_up_to_lane(T value) {
    for (u32 distance = 1; distance < WARP; distance *= 2) {
        const T below = __shfl_up_sync(FULL_WARP, value, distance);
        if (lane_of_warp() >= distance) value += below;
    }
    return value;
}

// Grid: any. Block: 256. Shared: none. Barriers: none. A warp takes a query: puts the places of
// the documents of listed units, counted from the query's, in place of their numbers.
extern "C" __global__ void __launch_bounds__(QUERY_THREADS)
    find_totals(Queries queries, Documents documents) {
    for (u32 query = warp_of_grid(); query < queries.query_count; query += warps_of_grid()) {
        const Listed listed = documents.listed[query];
        u32 sum = queries.found[query];
        u32* const found = queries.found + queries.query_count + listed.first;
        for (u32 tile = 0; tile < listed.count; tile += WARP) {
            const u32 at = tile + lane_of_warp();
            const u32 own = at < listed.count ? found[at] : 0;
            const u32 end = sum_up_to_lane(own);
            if (at < listed.count) found[at] = sum + end - own;
            sum += __shfl_sync(FULL_WARP, end, WARP - 1);
        }
        if (lane_of_warp() == 0) documents.totals[query] = sum + documents.tails[query];
    }
}

constexpr u32 OFFSET_THREADS = 1024;
constexpr u32 OFFSET_WARPS = OFFSET_THREADS / WARP;

// Grid: 1. Block: 1,024. Shared: a sum a warp. Barriers: 2. A thread takes neighbouring queries, up
// to whose ends documents are summed up. A batch is small: this takes microseconds.
extern "C" __global__ void __launch_bounds__(OFFSET_THREADS)
    find_offsets(Queries queries, Documents documents) {
    DYNAMIC_SHARED(u64, sums);
    const u32 share = (queries.query_count + OFFSET_THREADS - 1) / OFFSET_THREADS;
    const u32 begin = smaller(threadIdx.x * share, queries.query_count);
    const u32 end = smaller(begin + share, queries.query_count);
    u64 own = 0;
    for (u32 query = begin; query < end; ++query) own += documents.totals[query];
    const u64 of_lanes = sum_up_to_lane(own);
    if (lane_of_warp() == WARP - 1) sums[threadIdx.x / WARP] = of_lanes;
    __syncthreads();  // The sums of all warps are there.
    if (threadIdx.x < OFFSET_WARPS) {
        const u64 of_warp = sums[threadIdx.x];
        sums[threadIdx.x] = sum_up_to_lane(of_warp) - of_warp;
    }
    __syncthreads();  // So are the sums before them.
    u64 sum = sums[threadIdx.x / WARP] + of_lanes - own;
    if (threadIdx.x == 0) documents.offsets[0] = 0;
    for (u32 query = begin; query < end; ++query) {
        sum += documents.totals[query];
        documents.offsets[query + 1] = sum <= documents.room ? static_cast<u32>(sum) : UNFINISHED;
    }
}

// Writes the ids of a unit whose bits are set, all ids of the only list; returns their number.
__device__ inline u32 write_ids(const Segment& segment, const Query& own, u32 begin,
                                const u32* hits, u32* to) {
    const u32 lane = lane_of_warp(), len = own.end(begin) - begin;
    // Of the group of the lane's number.
    u32 of_lane = 0;
    if (own.lists > 1) {
        if (lane < UNIT_GROUPS) of_lane = hits[lane];
    } else if (lane * WARP < len) {
        const u32 rest = len - lane * WARP;
        of_lane = rest < WARP ? (1u << rest) - 1 : ~0u;
    }
    if (!__any_sync(FULL_WARP, of_lane)) return 0;
    const Ids ids(segment, own.source, begin, begin + len);
    u32 written = 0;
    for (u32 group = 0; group < UNIT_GROUPS; ++group) {
        const u32 of_group = __shfl_sync(FULL_WARP, of_lane, group);
        if (of_group >> lane & 1) {
            to[written + __popc(of_group & lanes_below())] = ids[begin + group * WARP + lane];
        }
        written += __popc(of_group);
    }
    return written;
}

// Writes the documents of a unit of words; returns their number.
__device__ inline u32 write_words(const Segment& segment, const Query& own, u32 begin, u32* to) {
    const u32 end = own.end(begin);
    u32 written = 0, words[LANE_WORDS];
    for (u32 at = begin; at < end; at += LANE_WORDS * WARP) {
        combine_words(segment, own, at, end, words);
#pragma unroll
        for (u32 i = 0; i < LANE_WORDS; ++i) {
            const u32 place = sum_up_to_lane(static_cast<u32>(__popc(words[i])));
            u32 next = written + place - __popc(words[i]);
            const u32 first = (at + i * WARP + lane_of_warp()) * WORD_BITS;
            for (u32 word = words[i]; word; word &= word - 1) {
                to[next++] = first + __ffs(static_cast<int>(word)) - 1;
            }
            written += __shfl_sync(FULL_WARP, place, WARP - 1);
        }
    }
    return written;
}

// Writes the documents of a unit of a query's tail, whose bits nobody kept.
__device__ inline u32 write_again(const Segment& segment, const Query& own, u32 begin, u32* to,
                                  WarpMemory& memory) {
    if (own.source.form == BITS) return write_words(segment, own, begin, to);
    if (own.lists > 1) search_ids<true>(segment, own, begin, memory);
    // A lane clears the bits that it reads here.
    return write_ids(segment, own, begin, memory.hits, to);
}

// Grid: any. Block: 256. Shared: memory of 8 warps. Barriers of warps only: 2 a unit; for units of
// tails, in addition as find_listed. A warp takes a unit.
extern "C" __global__ void __launch_bounds__(QUERY_THREADS)
    find_documents(Queries queries, Documents documents) {
    DYNAMIC_SHARED(WarpMemory, memories);
    WarpMemory& memory = memories[threadIdx.x / WARP];
    const u64 works = static_cast<u64>(queries.query_count) + listed_units(queries);
    for (u64 work = warp_of_grid(); work < works; work += warps_of_grid()) {
        const bool is_first = work < queries.query_count;
        Unit unit = {static_cast<u32>(work), 0};
        if (!is_first) unit = queries.units[work - queries.query_count];
        const u32 begin = documents.offsets[unit.query], end = documents.offsets[unit.query + 1];
        if (end == UNFINISHED || begin == end) continue;
        const Query own(queries, unit.query, memory);
        u32* const to = documents.documents + begin + (is_first ? 0 : queries.found[work]);
        if (own.source.form == BITS) {
            write_words(queries.segment, own, unit.begin, to);
        } else {
            const u32* const hits = documents.hits + work * UNIT_GROUPS;
            write_ids(queries.segment, own, unit.begin, hits, to);
        }
        if (!is_first || documents.tails[unit.query] == 0) continue;
        u32* at = documents.documents + end - documents.tails[unit.query];
        for (u32 i = documents.listed[unit.query].count + 1; i <= own.units(); ++i) {
            at += write_again(queries.segment, own, i * own.unit, at, memory);
        }
    }
}

// The number of ids of a tile, one a thread, that are in all lists: search, scan and compaction for
// each list. All threads call it.
__device__ inline u32 search_tile(const Segment& segment, const Query& query, u32 begin,
                                  u32* shared) {
    const Ids ids(segment, query.source, begin, query.end(begin));
    u32 left = query.end(begin) - begin;
    u32 id = threadIdx.x < left ? ids[begin + threadIdx.x] : 0;
    for (u32 i = 1; i < query.lists && left; ++i) {
        const List list = query.list(segment, i);
        const bool is_hit = threadIdx.x < left && is_in(list, id);
        const u32 place = sum_up_to_thread(is_hit, shared + QUERY_THREADS, left);
        if (is_hit) shared[place - 1] = id;
        __syncthreads();  // The ids are there, and all sums are read.
        if (threadIdx.x < left) id = shared[threadIdx.x];
    }
    return left;
}

// Grid: any. Block: 256. Shared: an id and two sums a thread. Barriers: 10 a query, and 10 for
// each tile of 256 ids and each list.
extern "C" __global__ void __launch_bounds__(QUERY_THREADS) count_blocks(Queries queries) {
    DYNAMIC_SHARED(u32, shared);
    const u32 warp = threadIdx.x / WARP;
    for (u32 query = blockIdx.x; query < queries.query_count; query += gridDim.x) {
        u32 count = 0, all = 0;
        // The first warp orders the terms, and the others wait for them.
        if (__syncthreads_or(warp == 0 && order_terms(queries, query))) {
            const Query own(queries, query);
            if (own.source.form == BITS) {
                for (u32 i = warp; i <= own.units(); i += QUERY_WARPS) {
                    count += count_words(queries.segment, own, i * own.unit);
                }
            } else {
                for (u32 i = 0; i <= own.units(); ++i) {
                    all += search_tile(queries.segment, own, i * own.unit, shared);
                }
            }
        }
        sum_up_to_thread(lane_of_warp() == 0 ? count : 0, shared + QUERY_THREADS, count);
        if (threadIdx.x == 0) queries.found[query] = all + count;
    }
}
