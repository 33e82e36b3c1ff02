// Frequent items by the C++ library of DataSketches, in the shape of the other peers: items are in
// memory, the clock runs from the empty sketch to the last item, and the first round is not timed.
//
// Arguments: file of little-endian u32 items, binary logarithm of the size of the map, rounds.
// Output: the times in seconds, and rows of item and count, as JSON.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <vector>

#include <frequent_items_sketch.hpp>

using Sketch = datasketches::frequent_items_sketch<uint32_t>;

static std::vector<uint32_t> read(const char* path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    std::vector<uint32_t> items(static_cast<size_t>(file.tellg()) / sizeof(uint32_t));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(items.data()), items.size() * sizeof(uint32_t));
    if (!file) {
        std::cerr << "cannot read " << path << "\n";
        std::exit(1);
    }
    return items;
}

int main(int count, char** arguments) {
    if (count != 4) {
        std::cerr << "expected a file, the logarithm of the size of the map, and rounds\n";
        return 2;
    }
    const std::vector<uint32_t> items = read(arguments[1]);
    const auto log_size = static_cast<uint8_t>(std::atoi(arguments[2]));
    const int rounds = std::atoi(arguments[3]);
    std::printf("{\"name\": \"DataSketches C++\", \"seconds\": [");
    Sketch sketch(log_size);
    for (int round = 0; round <= rounds; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        sketch = Sketch(log_size);
        for (const uint32_t item : items) {
            sketch.update(item);
        }
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
        if (round > 0) {
            std::printf("%s%.9f", round > 1 ? ", " : "", time.count());
        }
    }
    std::printf("], \"rows\": [");
    const char* separator = "";
    for (const auto& row : sketch.get_frequent_items(datasketches::NO_FALSE_NEGATIVES)) {
        std::printf("%s[%u, %llu]", separator, row.get_item(),
                    static_cast<unsigned long long>(row.get_estimate()));
        separator = ", ";
    }
    std::printf("]}\n");
}
