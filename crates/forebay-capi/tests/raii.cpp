// The C++ header, with exceptions.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include "forebay.hpp"

#define CHECK(condition) \
    ((condition) ? void() : (std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), std::abort()))

static_assert(std::is_nothrow_move_constructible_v<forebay::Permit>);
static_assert(!std::is_copy_constructible_v<forebay::Permit>);
static_assert(!std::is_copy_assignable_v<forebay::Class>);

static unsigned in_disk(const forebay::Scheduler &scheduler) {
    forebay_snapshot taken = 0;
    CHECK(forebay_snapshot_take(scheduler.get(), nullptr, &taken) == FOREBAY_OK);
    forebay::Handle snapshot(taken);
    auto stats = forebay::init<forebay_class_stats>();
    CHECK(forebay_snapshot_class(snapshot.get(), 0, 1, &stats) == FOREBAY_OK);
    CHECK(std::string_view(stats.name) == "queries");
    return stats.in_disk;
}

int main() {
    auto disk = forebay::init<forebay_disk>();
    disk.name = "data";
    disk.name_len = 4;
    disk.read_iops = disk.write_iops = 100000;
    disk.read_bandwidth = disk.write_bandwidth = 1000000000;
    auto scheduler = forebay::Scheduler::from_rates(disk);
    auto queries = scheduler.add_class("queries", 1000);

    {
        std::vector<forebay::Permit> held;
        for (int i = 0; i < 4; i++)
            held.push_back(queries.admit(FOREBAY_READ, 4096));
        CHECK(in_disk(scheduler) == 4);
        held[0].complete(4096);
        forebay::Permit moved = std::move(held[1]);
        CHECK(!held[0] && !held[1] && moved && in_disk(scheduler) == 3);
        held[2] = std::move(moved);
        CHECK(in_disk(scheduler) == 2);
    }
    CHECK(in_disk(scheduler) == 0);

    {
        auto entered = queries.enter();
        auto moved = std::move(entered);
        auto permit = scheduler.admit(FOREBAY_WRITE, 4096);
        CHECK(in_disk(scheduler) == 1);
    }
    auto untagged = scheduler.admit(FOREBAY_WRITE, 4096, std::chrono::seconds(10));
    CHECK(in_disk(scheduler) == 0);

    try {
        auto unknown = scheduler.find_class("nobody");
        CHECK(false);
    } catch (const forebay::Error &error) {
        CHECK(error.code() == FOREBAY_E_NOT_FOUND && std::strstr(error.what(), "queries") != nullptr);
    }
    try {
        auto missing = forebay::Scheduler::from_file("/nowhere.yaml");
        CHECK(false);
    } catch (const std::exception &error) {
        CHECK(std::strstr(error.what(), "/nowhere.yaml") != nullptr);
    }
    CHECK(scheduler.find_class("queries").set_shares(0).code() == FOREBAY_E_INVALID);

    char path[] = "/tmp/forebay-raii-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && unlink(path) == 0);
    char data[10000], back[10000];
    std::memset(data, 7, sizeof data);
    {
        forebay::Writer writer(queries, fd);
        writer.write(data, sizeof data);
        writer.sync();
    }
    CHECK(queries.read(fd, back, sizeof back, 0) == sizeof back && std::memcmp(data, back, sizeof back) == 0);
    queries.sync(fd);
    close(fd);
    CHECK(scheduler.open_metrics().find("# EOF") != std::string::npos);
    std::printf("raii: ok\n");
    return 0;
}
