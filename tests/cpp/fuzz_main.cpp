// Runs the fuzz target without libFuzzer, so that any compiler will do:
//   fuzz_core [seconds] [seed]   random inputs; the same seed gives the same inputs
// An input that takes longer than kPatience ends the program.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {
constexpr unsigned kPatience = 60;  // seconds, under sanitizers
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  const uint32_t seed = argc > 2 ? uint32_t(std::atol(argv[2])) : 0;
  std::printf("fuzzing for %g s with seed %u\n", seconds, seed);
  std::fflush(stdout);
  std::mt19937 generator(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  long inputs = 0;
  for (; std::chrono::steady_clock::now() < end; ++inputs) {
    std::vector<uint8_t> data(size_t(1) << (generator() % 17));
    for (uint8_t& byte : data) byte = uint8_t(generator());
    alarm(kPatience);
    LLVMFuzzerTestOneInput(data.data(), data.size());
  }
  std::printf("%ld inputs, nothing found\n", inputs);
}
