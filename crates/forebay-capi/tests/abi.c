/* Prints the sizes of structures and the offsets of their fields, to be compared. */
#include <stddef.h>
#include <stdio.h>

#include "forebay.h"

#define SIZE(type) printf("%s %zu\n", #type, sizeof(struct type))
#define FIELD(type, field) printf("%s.%s %zu\n", #type, #field, offsetof(struct type, field))

int main(void) {
    SIZE(forebay_limits);
    FIELD(forebay_limits, size);
    FIELD(forebay_limits, bytes_per_second);
    FIELD(forebay_limits, operations_per_second);
    SIZE(forebay_deleter_options);
    FIELD(forebay_deleter_options, size);
    FIELD(forebay_deleter_options, rate);
    FIELD(forebay_deleter_options, commands_per_second);
    FIELD(forebay_deleter_options, trash_in);
    FIELD(forebay_deleter_options, trash_in_len);
    FIELD(forebay_deleter_options, files_max);
    FIELD(forebay_deleter_options, flags);
    SIZE(forebay_deleted);
    FIELD(forebay_deleted, size);
    FIELD(forebay_deleted, files);
    FIELD(forebay_deleted, bytes);
    FIELD(forebay_deleted, bytes_total);
    FIELD(forebay_deleted, steps);
    FIELD(forebay_deleted, state);
    FIELD(forebay_deleted, unlinked);
    SIZE(forebay_event);
    FIELD(forebay_event, size);
    FIELD(forebay_event, user_data);
    FIELD(forebay_event, waiting);
    FIELD(forebay_event, permit);
    FIELD(forebay_event, code);
    SIZE(forebay_disk);
    FIELD(forebay_disk, size);
    FIELD(forebay_disk, name);
    FIELD(forebay_disk, name_len);
    FIELD(forebay_disk, mountpoint);
    FIELD(forebay_disk, mountpoint_len);
    FIELD(forebay_disk, read_iops);
    FIELD(forebay_disk, write_iops);
    FIELD(forebay_disk, read_bandwidth);
    FIELD(forebay_disk, write_bandwidth);
    SIZE(forebay_snapshot_info);
    FIELD(forebay_snapshot_info, size);
    FIELD(forebay_snapshot_info, uptime_ns);
    FIELD(forebay_snapshot_info, disks);
    FIELD(forebay_snapshot_info, classes);
    FIELD(forebay_snapshot_info, unlisted_opens);
    FIELD(forebay_snapshot_info, bugs);
    SIZE(forebay_disk_stats);
    FIELD(forebay_disk_stats, size);
    FIELD(forebay_disk_stats, name);
    FIELD(forebay_disk_stats, name_len);
    FIELD(forebay_disk_stats, effective_goal_ns);
    FIELD(forebay_disk_stats, in_flight_ns);
    FIELD(forebay_disk_stats, speed_permille);
    FIELD(forebay_disk_stats, unscheduled_read);
    FIELD(forebay_disk_stats, unscheduled_written);
    SIZE(forebay_class_stats);
    FIELD(forebay_class_stats, size);
    FIELD(forebay_class_stats, name);
    FIELD(forebay_class_stats, name_len);
    FIELD(forebay_class_stats, shares);
    FIELD(forebay_class_stats, queued);
    FIELD(forebay_class_stats, in_disk);
    FIELD(forebay_class_stats, held_long);
    FIELD(forebay_class_stats, operations);
    FIELD(forebay_class_stats, bytes);
    FIELD(forebay_class_stats, errors);
    FIELD(forebay_class_stats, cancelled);
    FIELD(forebay_class_stats, consumption_ns);
    FIELD(forebay_class_stats, starved_ns);
    FIELD(forebay_class_stats, limited_ns);
    FIELD(forebay_class_stats, queue_p50_ns);
    FIELD(forebay_class_stats, queue_p99_ns);
    FIELD(forebay_class_stats, disk_p50_ns);
    FIELD(forebay_class_stats, disk_p99_ns);
    return 0;
}
