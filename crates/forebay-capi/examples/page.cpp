// Reads a page under a permit, without exceptions.
//
//     c++ -std=c++17 -fno-exceptions -o page page.cpp $(pkg-config --cflags --libs forebay) && ./page FILE
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include <forebay.hpp>

int main(int argc, char **argv) {
    int fd = open(argc > 1 ? argv[1] : argv[0], O_RDONLY);
    forebay_disk disk = forebay::init<forebay_disk>();
    disk.name = "data";
    disk.name_len = 4;
    disk.read_iops = disk.write_iops = 200000;
    disk.read_bandwidth = disk.write_bandwidth = 1500000000;

    forebay::Error error;
    auto scheduler = forebay::Scheduler::from_rates(disk, 0, error);
    if (error)
        return std::fprintf(stderr, "%s\n", error.what()), 1;
    auto queries = scheduler.add_class("queries", 1000, error);
    if (error)
        return std::fprintf(stderr, "%s\n", error.what()), 1;

    char page[4096];
    auto permit = queries.admit(FOREBAY_READ, sizeof page, forebay::forever, error);
    if (error)
        return std::fprintf(stderr, "%s\n", error.what()), 1;
    ssize_t result = pread(fd, page, sizeof page, 0);
    permit.complete(result);
    std::printf("%ld bytes\n", static_cast<long>(result));
    close(fd);
    return result < 0;
}
