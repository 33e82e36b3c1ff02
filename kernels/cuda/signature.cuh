// signature.cuh - parity signatures: bit h of a set's signature is the parity of its tokens that
// are hashed to h. The same bits as kernels/src/postings (`sign`) makes.
#pragma once

#include "device.cuh"

// A signature in registers, of 1, 2, 4 or 8 words.
template <u32 WORDS>
struct Signature {
    u64 words[WORDS];
};

// The signature of `len` tokens. Every word is looked at for each token, so that all of them stay
// in registers.
template <u32 WORDS>
__device__ inline Signature<WORDS> sign(const u32* tokens, u32 len) {
    Signature<WORDS> signature{};
    for (u32 at = 0; at < len; ++at) {
        const u32 hash = tokens[at] * 0x9e3779b1u >> 23;
        const u64 bit = 1ull << hash % 64;
#pragma unroll
        for (u32 word = 0; word < WORDS; ++word) {
            signature.words[word] ^= hash / 64 % WORDS == word ? bit : 0;
        }
    }
    return signature;
}

// The number of bits in which two signatures differ.
template <u32 WORDS>
__device__ inline u32 distance(const u64* left, const Signature<WORDS>& right) {
    u32 bits = 0;
#pragma unroll
    for (u32 word = 0; word < WORDS; ++word) bits += __popcll(left[word] ^ right.words[word]);
    return bits;
}
