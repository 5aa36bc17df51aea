// Runs the real program as a child process: its output, exit code and time, and a running one that
// can be signalled. One thread at a time.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace sluice::cli_test {

struct Outcome {
  int exit_code = -1;  ///< -1: ended by a signal
  int signal = 0;
  std::string out;
  std::string err;
  double seconds = 0;
};

/// Where the child's standard output or standard error goes.
enum class Output { pipe, closed, full_disk };

struct Launch {
  std::string input = {};  ///< standard input, less than a pipe holds (64 KiB)
  bool input_stays_open = false;
  Output output = Output::pipe;
  Output error = Output::pipe;
  std::string folder = {};  ///< working folder; empty: this one
};

/// A child process; killed when the object dies while it still runs.
class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments, const Launch& launch = {});
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Reads until standard output or standard error holds the text. False: the program ended first.
  bool wait_for_output(const std::string& text);
  bool wait_for_error(const std::string& text);

  void send(int signal) const;
  /// Nobody reads standard output any more.
  void close_output();
  /// Waits for the end.
  Outcome finish();

 private:
  bool wait_for(const std::string& stream, const std::string& text);
  bool read_some();

  pid_t process_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  double start_s_ = 0;
  Outcome outcome_;
};

/// Runs to the end.
Outcome run(const std::vector<std::string>& arguments, const Launch& launch = {});

/// The demo model.
std::string model_path();
/// The bytes of a file. REQUIRES: it is there.
std::string file_bytes(const std::string& path);

}  // namespace sluice::cli_test
