// Set similarity joins by the program gpussjoin, whose filters are those of set_sim_join: from a
// file to the number of pairs.
//
// The program hands its candidates to a class `GPUHandler`. Compiled with -DDEVICE this is its own,
// which verifies on a GPU; otherwise the class below, which verifies by the program's function for
// CPUs. One of the macros ALL_PAIRS, PP_JOIN, GROUP_JOIN names the join.
//
// Arguments: file of lines of tokens, threshold, rounds, seconds after which no round begins; with
// -DDEVICE also scenario (1 to 3), threads of a block, and candidates of a wave.
// Output: a line of JSON for each round.

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <tr1/functional>
#include <utility>
#include <vector>

#ifndef DEVICE
#define GPUSSJOIN_HANDLER_H

class GPUHandler {
   public:
    explicit GPUHandler(double threshold) : threshold(threshold) {}
    void addIndexedRecord(std::vector<unsigned> tokens) { sets.push_back(std::move(tokens)); }
    void addForeignRecord(const std::vector<unsigned>&) { std::abort(); }
    void transferInputCollection() {}
    void transferForeignInputCollection() {}
    void reserveCandidateSpace() {}
    void insertProbe(unsigned number) {
        probe = number;
        const size_t size = sets[probe].size();
        if (size != size_of_bounds) {
            size_of_bounds = size;
            bounds.assign(size + 1, 0);
        }
    }
    void insertCandidate(unsigned candidate);
    void updateProbeNumberOfCandidates() {}
    void updateMaxSetSize(unsigned) {}
    void flush() {}
    void free() {}
    size_t getResult() const { return results; }

   private:
    double threshold;
    std::vector<std::vector<unsigned>> sets;
    unsigned probe = 0;
    // Least overlap with a set of each size, or 0 while it is not known.
    std::vector<unsigned> bounds;
    size_t size_of_bounds = 0;
    size_t results = 0;
};
#endif

#if defined(ALL_PAIRS)
#include "allpairs.h"
using Join = AllPairs<Jaccard>;
#elif defined(PP_JOIN)
#include "mpjoin.h"
using Join = MpJoin<Jaccard, PPJoinIndexPolicy>;
#elif defined(GROUP_JOIN)
#include "groupjoin.h"
using Join = GroupJoin<Jaccard, PPJoinIndexPolicy>;
#endif
#include "input.h"

#ifndef DEVICE
void GPUHandler::insertCandidate(unsigned candidate) {
    const auto& left = sets[probe];
    const auto& right = sets[candidate];
    unsigned& bound = bounds[right.size()];
    if (bound == 0) {
        bound = Jaccard::minoverlap(left.size(), right.size(), threshold);
    }
    results += verifypair(left, right, bound);
}
#endif

// Sets as the program numbers and sorts them, for the joins, whose candidates are right only for
// sets that come in this order.
class Prepared : public Algorithm {
   public:
    Prepared() : handler(sets, foreign) {}
    void addrecord(IntRecord& record) override { handler.addrecord(record); }
    void addforeignrecord(IntRecord&) override {}
    void addrawrecord(IntRecord&) override {}
    void addrawforeignrecord(IntRecord&) override {}
    void preparerecords() override { handler.prepareindex(); }
    void prepareforeignrecords() override {}
    void doindex(GPUHandler*) override {}
    void dojoin(HandleOutput*) override {}
    size_t getResult() override { return 0; }
    IntRecords sets;

   private:
    IntRecords foreign;
    algo_handle_records_freq_sort<IntRecords, IntRecords> handler;
};

using Clock = std::chrono::steady_clock;

static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Runs a join once and returns the seconds that it took.
static double run(char** arguments) {
    const double threshold = std::atof(arguments[2]);
    const auto begin = Clock::now();
    Prepared prepared;
    {
        get_int_records_fast reader(&prepared);
        tokenize_whitespace tokens;
        reader.start(arguments[1], tokens);
    }
    prepared.preparerecords();
    const double preparing = seconds_since(begin);
    Join join(threshold);
    for (auto& set : prepared.sets) {
        join.addrawrecord(set);
    }
#ifdef DEVICE
    const auto scenario = static_cast<unsigned>(std::atoi(arguments[5]));
    const auto threads = static_cast<unsigned>(std::atoi(arguments[6]));
    const auto candidates = static_cast<size_t>(std::atoll(arguments[7]));
    GPUHandler verification(scenario, true, threshold, threads, candidates, false, "");
#else
    GPUHandler verification(threshold);
#endif
    join.doindex(&verification);
    const auto begin_join = Clock::now();
    join.dojoin(nullptr);
    const double joining = seconds_since(begin_join);
    std::printf("{\"pairs\": %zu, \"preparing\": %.9f, \"joining\": %.9f}\n", join.getResult(),
                preparing, joining);
    return preparing + joining;
}

int main(int count, char** arguments) {
#ifdef DEVICE
    const int expected = 8;
#else
    const int expected = 5;
#endif
    if (count != expected) {
        std::cerr << "expected " << expected - 1 << " arguments\n";
        return 2;
    }
    const int rounds = std::atoi(arguments[3]);
    const double limit = std::atof(arguments[4]);
    double spent = 0;
    for (int round = 0; round < rounds && (round == 0 || spent < limit); ++round) {
        spent += run(arguments);
    }
}
