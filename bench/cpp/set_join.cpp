// Set similarity joins by the program gpussjoin, whose filters are those of set_sim_join: from a
// file to the number of pairs.
//
// The program hands its candidates to a class `GPUHandler`. Compiled with -DDEVICE this is its own,
// which verifies on a GPU. Otherwise it is the class below, which verifies the candidates of a set
// by the program's function for CPUs, from where set_sim_join does: after the prefix that ends
// first (Mann, Augsten, Bouros, PVLDB 9(9), 2016, section 3). One of the macros ALL_PAIRS, PP_JOIN,
// GROUP_JOIN names the join.
//
// Arguments: file of lines of tokens, threshold, rounds, seconds after which no round begins; with
// -DDEVICE also scenario (1 to 3), threads of a block, and candidates of a wave.
// Output: a line of JSON for each round.

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <list>
#include <numeric>
#include <sparsehash/dense_hash_map>
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
        candidates.clear();
    }
    void insertCandidate(unsigned candidate) { candidates.push_back(candidate); }
    void updateProbeNumberOfCandidates();
    void updateMaxSetSize(unsigned) {}
    void flush() {}
    void free() {}
    size_t getResult() const { return results; }

   private:
    double threshold;
    std::vector<std::vector<unsigned>> sets;
    unsigned probe = 0;
    std::vector<unsigned> candidates;
    // Least overlap of a set of `size_of_bounds` tokens with one of each size, or 0 while it is
    // not known.
    std::vector<unsigned> bounds;
    size_t size_of_bounds = 0;
    size_t results = 0;
};

// What a filter knows of its candidates is private to the join.
#define private public
#define protected public
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
#undef private
#undef protected

// The join that runs.
static Join* join_of_handler = nullptr;

// Common tokens of the prefixes of a pair, as far as the filter has counted them, and the length
// of the candidate's prefix.
struct Match {
    unsigned count;
    // Positions after the last common token.
    unsigned probe;
    unsigned candidate;
    unsigned prefix;
};

static Match match(unsigned candidate) {
#if defined(ALL_PAIRS)
    const auto& set = join_of_handler->indexedrecords[candidate];
    const unsigned count = set.candidateData.count;
    return {count, count, count, set.structuredata.prefsize};
#else
#if defined(PP_JOIN)
    const auto& set = join_of_handler->indexedrecords[candidate];
#else
    // Groups are made before the first set is looked up.
    static std::vector<unsigned> group_of;
    if (group_of.empty()) {
        const auto& groups = join_of_handler->groupindexedrecords;
        group_of.resize(join_of_handler->indexedrecords.size());
        for (unsigned group = 0; group < groups.size(); ++group) {
            group_of[groups[group].firstgrouprecord->recordid] = group;
        }
    }
    const auto& set = join_of_handler->groupindexedrecords[group_of[candidate]];
#endif
    const auto& data = set.candidateData;
    const auto count = static_cast<unsigned>(data.count);
    return {count, data.recpos + 1, data.indrecpos + 1, set.structuredata.prefsize};
#endif
}

void GPUHandler::updateProbeNumberOfCandidates() {
    const auto& left = sets[probe];
    if (left.size() != size_of_bounds) {
        size_of_bounds = left.size();
        bounds.assign(left.size() + 1, 0);
    }
    const unsigned prefix = Jaccard::maxprefix(left.size(), threshold);
    for (const unsigned candidate : candidates) {
        const auto& right = sets[candidate];
        unsigned& bound = bounds[right.size()];
        if (bound == 0) {
            bound = Jaccard::minoverlap(left.size(), right.size(), threshold);
        }
        const Match found = match(candidate);
        if (left[prefix - 1] > right[found.prefix - 1]) {
            results += verifypair(left, right, bound, found.probe, found.prefix, found.count);
        } else {
            results += verifypair(left, right, bound, prefix, found.candidate, found.count);
        }
    }
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
    join_of_handler = &join;
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
