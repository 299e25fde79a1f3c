# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_forebay_global_optspecs
    string join \n h/help V/version
end

function __fish_forebay_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_forebay_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_forebay_using_subcommand
    set -l cmd (__fish_forebay_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c forebay -n "__fish_forebay_needs_command" -s h -l help -d 'Print help'
complete -c forebay -n "__fish_forebay_needs_command" -s V -l version -d 'Print version'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "bench" -d 'Run a load on a disk, and show what each job got'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "top" -d 'Show the disks, classes and problems of a running process, from the metrics that it serves (for example with `bench --metrics`)'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "check" -d 'Look for settings of kernel, filesystem and disk that cost throughput or latency'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "info" -d 'Show the settings that the scheduler derives from a disk\'s rates'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "tune" -d 'Measure disks, and write the files that describe them to the scheduler'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "explore" -d 'Find out which mixes of reads and writes a disk serves within a latency goal'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "export" -d 'Serve the properties of a machine\'s disks, and the findings of `check`, as metrics'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "sim" -d 'Run the scheduler on simulated disks, under a virtual clock'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "report" -d 'Make a page from results that `bench` or `sim run` printed with --format json'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "reproduce" -d 'Repeat the published experiments on simulated disks, and compare their figures'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "disk" -d 'Serve simulated disks in real time'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "govern" -d 'Meet a latency goal for unmodified programs with the kernel\'s io.cost. Needs root'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "rm" -d 'Delete files at a pace, so that the discards (TRIMs) that follow delay no reads'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "run" -d 'Run a command in a cgroup with an I/O weight for io.cost or BFQ'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "trace" -d 'Show what the kernel sends to disks, from its block tracepoints. Needs root, except with --from'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "trim" -d 'Discard the free space of a file system, like fstrim, but at a limited rate'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l sched-groups -d 'A file with priority classes for the jobs, and groups of classes' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l duration -d 'The duration of the measurement' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l warmup -d 'The duration of the run before the measurement' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l shards -d 'Number of shards [default: one per processor; 2 on a simulated disk]' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l properties -d 'The properties of the disk: an io-properties file, or a forebay.yaml [default: a real disk is probed for some seconds; those of a simulated disk are known]' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l latency-goal -d 'The disk time with which the window begins, unless the disk needs more; trials change it later. Use --latency-target to bound latencies [default: as much as the disk needs; 0.75ms with --control rates]' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l control -d 'How --policy pace+window sizes the window and the pace [default: adaptive]' -r -f -a "adaptive\t'Trials find the smallest window that gives the full throughput of the present mix of requests'
rates\t'The rates of the properties file are upper limits, with at most two effective goals of disk time in flight'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l fixed -d 'A constant window in disk time, and a constant pace as a factor on the rates of the properties file, or off; for comparisons. An example is window=1.5ms,pace=off' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l latency-target -d 'A latency target from enqueueing to completion, which applies while other requests wait: a percentile of reads, such as p95=1ms or p99.9=2ms, or of writes, such as writes:p95=5ms; only of the time in the disk with disk:p95=1ms; or off. While it is missed, less is sent to the disk, as long as that improves the latency [default: that of --properties]' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l policy -d 'How the scheduler decides when a request may go to the disk' -r -f -a "pace+window\t'At the rate of the disk, within a window of disk time in flight'
flow-ratio\t'Seastar 2023: at the rate of the disk, and slower while requests pile up in it'
two-level-bucket\t'Seastar 2022: at the rate of the disk, and no faster than requests complete'
token-bucket\t'Seastar 2022, without the second level: at the rate of the disk'
littles-law\t'Seastar 2018: as much in flight as the disk serves within the latency goal'
concurrency\t'Seastar 2016: at most --concurrency requests in flight'
2016\t'Seastar 2016 with its fair queue: concurrency in the order exponential-decay'
none\t'No scheduling: each request goes at once'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l region-goal -d 'Of several regions in a forebay.yaml, take the one nearest to this latency of reads, such as p95=1ms [default: nearest to the latency target of reads, or else to the effective goal]' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l order -d 'The order in which the scheduler serves classes [default: that of --policy]' -r -f -a "start-time\t'By disk time per share, over all shards'
exponential-decay\t'Seastar 2016: per shard, by weights that are forgotten within 100 ms'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l concurrency -d 'The most requests in the disk, for --policy concurrency and 2016' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l seed -d 'Seed of the random offsets and gaps' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l compare -d 'Run the same load without a scheduler first, and compare [default with --format text]' -r -f -a "none\t'Compare with the same load without a scheduler'
off\t'Do not compare: run only once'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l report -d 'Write a page with findings, totals and charts over time; results in JSON or YAML get the same time series (`series`)' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l format -d 'How to print the results' -r -f -a "text\t'A table'
json\t'JSON'
yaml\t'YAML'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l grow -d 'Compare methods of growing files, one file at a time and many at once, instead of running jobs [default: all methods; or name some, such as append,fallocate]' -r -f -a "append\t'Each write makes the file longer'
truncate\t'Files are set to their final length first (ftruncate), without blocks'
fallocate\t'Files get their length and their blocks first (fallocate)'
double\t'A write beyond the end doubles the length first'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l grow-files -d 'Number of files that grow at once in one directory' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l grow-size -d 'The final size of each file' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l grow-request -d 'The size of each write to a growing file' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l diff -d 'Compare two results of this command or of `sim run --format json`; with one file, compare it with this run. Exit code: 0 no regression, 1 a regression, 2 not comparable' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l fail-below -d 'Ignore regressions smaller than this, such as 5% [default: any that is statistically significant fails]' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l dir -d 'Where to make the files: a directory, /dev/null to measure the scheduler alone, or with --overwrite-device a block device' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l backend -d 'The interface for requests to the kernel' -r -f -a "auto\t'The first available one of io_uring, linux-aio and threads'
io_uring\t'io_uring, or an error'
linux-aio\t'linux-aio, or an error'
threads\t'Threads that make blocking calls'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l topology -d 'How the threads of the load share the scheduler' -r -f -a "per-thread\t'Each thread has an I/O queue and does its own I/O'
shared\t'One I/O queue for all threads, which ask it for permits and do their own I/O'
coordinators\t'--io-queues threads with an I/O queue each do the I/O that all others send them'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l io-queues -d 'Number of threads that do the I/O with --topology coordinators [default: 1]. The scheduler uses fewer if a disk\'s window holds fewer than four reads of 4 KiB per thread' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l metrics -d 'Serve the scheduler\'s metrics as OpenMetrics text over HTTP while the load runs, for example at 127.0.0.1:9180; port 0 takes a free port' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l share-device -d 'Use only the Nth of M equal parts of the block device, such as 1/3, while other processes use the rest' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l end-with -d 'End when this process ends, which has started this one' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l no-region -d 'Ignore the regions of a forebay.yaml: a mix of reads and writes then costs as much as its reads and its writes cost separately'
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l overwrite-device -d 'Allow the data on the block device named with --dir to be destroyed'
complete -c forebay -n "__fish_forebay_using_subcommand bench" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand top" -l interval -d 'The interval of the figures, and of the updates of a live view' -r
complete -c forebay -n "__fish_forebay_using_subcommand top" -l format -d 'The output format of one interval; text has lines of 80 columns' -r -f -a "text\t'For people'
json\t'JSON'"
complete -c forebay -n "__fish_forebay_using_subcommand top" -l once -d 'Print one interval as text, and exit'
complete -c forebay -n "__fish_forebay_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand check" -l format -d 'How to print the findings' -r -f -a "text\t'For people'
json\t'JSON'"
complete -c forebay -n "__fish_forebay_using_subcommand check" -s v -l verbose -d 'Show also the checks that passed'
complete -c forebay -n "__fish_forebay_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand info" -l properties -d 'The properties of the disks: an io-properties file, or a forebay.yaml, which has more' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand info" -l disk -d 'A preset or a disk file; may be repeated' -r
complete -c forebay -n "__fish_forebay_using_subcommand info" -l mountpoint -d 'The mountpoint of the disk of --disk, for --format properties and io.cost' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand info" -l shards -d 'Number of shards [default: one per processor]' -r
complete -c forebay -n "__fish_forebay_using_subcommand info" -l numa-nodes -d 'Number of NUMA nodes [default: those of this machine]' -r
complete -c forebay -n "__fish_forebay_using_subcommand info" -l latency-goal -d 'The disk time with which the window begins, unless the disk needs more' -r
complete -c forebay -n "__fish_forebay_using_subcommand info" -l region-goal -d 'Of several regions in a forebay.yaml, take the one nearest to this latency of reads, such as p95=1ms [default: nearest to the latency target of reads, or else to the effective goal]' -r
complete -c forebay -n "__fish_forebay_using_subcommand info" -l latency-target -d 'A latency target, which applies while other requests wait: p95=1ms of reads from enqueueing to completion, writes:p95=5ms of writes, disk:p95=1ms only of the time in the disk, or off [default: that of --properties]' -r
complete -c forebay -n "__fish_forebay_using_subcommand info" -l format -d 'The output format' -r -f -a "text\t'Text for people'
json\t'JSON'
properties\t'An io-properties file of the disks, or a forebay.yaml if one of them seeks or has a target'
io.cost\t'Settings for the kernel\'s io.cost (cgroup v2): its lines, a file for the hardware database of systemd, and units'"
complete -c forebay -n "__fish_forebay_using_subcommand info" -l list -d 'List the cloud machines and volumes that --disk knows, and the sources of their figures'
complete -c forebay -n "__fish_forebay_using_subcommand info" -l no-region -d 'Ignore the regions of a forebay.yaml: a mix of reads and writes then costs as much as its reads and its writes cost separately'
complete -c forebay -n "__fish_forebay_using_subcommand info" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l budget -d 'The duration and the writes of the measurement [default: standard, with --watch quick]' -r -f -a "quick\t'About a minute, at most 64 GiB written, figures within about 10 %'
standard\t'About 3 minutes, up to 5 on a slow disk, at most 128 GiB written, figures within about 5 %'
thorough\t'Until the disk is steady, more than half an hour, at most 1 TiB written'"
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l watch -d 'Watch a volume for burst credits in the background, for at most this many hours, 1 to 48. While other programs use the disk, it uses 2 % of the time. It ends when the credits have run out. Ctrl-C ends it with the figures so far' -r
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l write-limit -d 'The most to write to each disk, instead of the budget\'s limit, or of 64GB with --watch' -r
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l out -d 'The directory for the files, which is created if it is missing' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l format -d 'The output format' -r -f -a "text\t'For people'
json\t'JSON'"
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l resume -d 'Continue an interrupted measurement' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l fit-from -d 'Write the files from the measurements of an earlier run; nothing is measured' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l diff -d 'Compare two runs; with one file, measure now and compare with it. Exit code: 0 no regression, 1 a regression, 2 not comparable' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l history -d 'Keep the last 200 runs in a directory, compare this run with the earlier ones, and draw the rates over time there. The exit codes are those of --diff' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l fail-below -d 'Ignore regressions smaller than this, such as 5% [default: any that is statistically significant fails]' -r
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l simulate -d 'Measure a simulated disk, a preset or a disk file, under virtual time' -r
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l seed -d 'Seed of the simulated disk' -r
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l other-disk -d 'Allow a comparison of different disks, for example of two machines'
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l overwrite-device -d 'DIR is a block device, and its data may be destroyed'
complete -c forebay -n "__fish_forebay_using_subcommand tune" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l from -d 'A surface measured earlier: CSV, or the result file (.json) of diskplorer' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l simulate -d 'Measure a simulated disk, a preset or a disk file, under virtual time' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l grid -d 'Measure all combinations of N rates of reads and N rates of writes, 4 to 32' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l seconds -d 'The duration of each load, after a warm-up of a quarter of it, or a third on a simulated disk [default: 2s; on a simulated disk until 10,000 reads are done]' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l read-size -d 'The size of a read' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l write-size -d 'The size of a write' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l data-size -d 'The size of the data [default: 2GB below DIR, half to read and half to write; a whole simulated disk, for both]' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l trim-after -d 'On a simulated disk: discard written data after this time, such as 10s' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l latency-of -d 'On a simulated disk: the requests whose latencies are measured. Regions in a forebay.yaml are always of reads' -r -f -a "reads\t'Reads'
writes\t'Writes'"
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l combine -d 'On a simulated disk: the two quantities to combine. Only regions of rates go into a forebay.yaml' -r -f -a "rates\t'Rates of writes and of reads'
reads\t'Rates of large reads, of --write-size, and of reads'
sizes\t'Sizes of writes and of reads up to --write-size and --read-size, at --at-rates'"
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l at-rates -d 'For --combine sizes: reads and writes per second, such as 10000,2000' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l properties -d 'The properties of the disk, which set the highest rates: an io-properties file, or a forebay.yaml [default: the disk is probed for some seconds]' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l save -d 'Write the surface as CSV for --from [default: explore.csv if DIR is measured; an existing file is renamed to explore.csv.old]' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l goal -d 'A goal: a percentile of reads and its longest latency, such as p95=1ms; may be repeated [default: p95 of 0.5, 1 and 2 ms, as far as the disk meets them]' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -s o -l output -d 'Replace the regions in this forebay.yaml, which `tune` wrote' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l report -d 'Write a page with heat maps of the region and the straight line, and of the loads for which they are wrong' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l svg -d 'Write only the heat maps' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l what-if -d 'Predict what classes with these loads would get from the disk in this forebay.yaml, by its region for --goal; with --simulate, next to the results of the simulator' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l load -d 'A class: its name, its shares, and its load per second, as reads of 4 KiB or as bytes in writes of 128 KiB, such as queries:1000:reads=50000, log:200:writes=100MB (powers of 1024) or compaction:100:writes=max; may be repeated' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l format -d 'The output format' -r -f -a "text\t'For people'
json\t'JSON'"
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l full -d 'Measure all combinations of 21 rates of reads and 21 rates of writes'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l trim -d 'Discard written data at the rate of the writes: by holes in files, or by discards on devices'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l overwrite-device -d 'DIR is a block device, and its data may be destroyed'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l resume -d 'Continue the interrupted measurement of DIR, whose loads are saved next to the file of --save'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l other-disk -d 'Replace them even if the highest rates of the surface are less than half or more than twice those of that file'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l json -d 'The same as --format json'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand export" -l properties -d 'The properties of the disks: an io-properties file, or a forebay.yaml, which has more' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand export" -l listen -d 'The address on which to serve the metrics' -r
complete -c forebay -n "__fish_forebay_using_subcommand export" -l every -d 'The time between two checks of the directories, which also reload the file of --properties' -r
complete -c forebay -n "__fish_forebay_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and not __fish_seen_subcommand_from run swarm replay help" -s h -l help -d 'Print help'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and not __fish_seen_subcommand_from run swarm replay help" -f -a "run" -d 'Run a load on a simulated disk, and show what each job got'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and not __fish_seen_subcommand_from run swarm replay help" -f -a "swarm" -d 'Run random scenarios, and check the scheduler\'s guarantees at every step'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and not __fish_seen_subcommand_from run swarm replay help" -f -a "replay" -d 'Repeat a scenario that `forebay sim swarm` has printed'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and not __fish_seen_subcommand_from run swarm replay help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l sched-groups -d 'A file with priority classes for the jobs, and groups of classes' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l duration -d 'The duration of the measurement' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l warmup -d 'The duration of the run before the measurement' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l shards -d 'Number of shards [default: one per processor; 2 on a simulated disk]' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l properties -d 'The properties of the disk: an io-properties file, or a forebay.yaml [default: a real disk is probed for some seconds; those of a simulated disk are known]' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l latency-goal -d 'The disk time with which the window begins, unless the disk needs more; trials change it later. Use --latency-target to bound latencies [default: as much as the disk needs; 0.75ms with --control rates]' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l control -d 'How --policy pace+window sizes the window and the pace [default: adaptive]' -r -f -a "adaptive\t'Trials find the smallest window that gives the full throughput of the present mix of requests'
rates\t'The rates of the properties file are upper limits, with at most two effective goals of disk time in flight'"
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l fixed -d 'A constant window in disk time, and a constant pace as a factor on the rates of the properties file, or off; for comparisons. An example is window=1.5ms,pace=off' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l latency-target -d 'A latency target from enqueueing to completion, which applies while other requests wait: a percentile of reads, such as p95=1ms or p99.9=2ms, or of writes, such as writes:p95=5ms; only of the time in the disk with disk:p95=1ms; or off. While it is missed, less is sent to the disk, as long as that improves the latency [default: that of --properties]' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l policy -d 'How the scheduler decides when a request may go to the disk' -r -f -a "pace+window\t'At the rate of the disk, within a window of disk time in flight'
flow-ratio\t'Seastar 2023: at the rate of the disk, and slower while requests pile up in it'
two-level-bucket\t'Seastar 2022: at the rate of the disk, and no faster than requests complete'
token-bucket\t'Seastar 2022, without the second level: at the rate of the disk'
littles-law\t'Seastar 2018: as much in flight as the disk serves within the latency goal'
concurrency\t'Seastar 2016: at most --concurrency requests in flight'
2016\t'Seastar 2016 with its fair queue: concurrency in the order exponential-decay'
none\t'No scheduling: each request goes at once'"
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l region-goal -d 'Of several regions in a forebay.yaml, take the one nearest to this latency of reads, such as p95=1ms [default: nearest to the latency target of reads, or else to the effective goal]' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l order -d 'The order in which the scheduler serves classes [default: that of --policy]' -r -f -a "start-time\t'By disk time per share, over all shards'
exponential-decay\t'Seastar 2016: per shard, by weights that are forgotten within 100 ms'"
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l concurrency -d 'The most requests in the disk, for --policy concurrency and 2016' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l seed -d 'Seed of the random offsets and gaps' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l compare -d 'Run the same load without a scheduler first, and compare [default with --format text]' -r -f -a "none\t'Compare with the same load without a scheduler'
off\t'Do not compare: run only once'"
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l report -d 'Write a page with findings, totals and charts over time; results in JSON or YAML get the same time series (`series`)' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l format -d 'How to print the results' -r -f -a "text\t'A table'
json\t'JSON'
yaml\t'YAML'"
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l disk -d 'The disk: a preset, a disk file, or a measured latency surface (.csv, .json)' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l tick -d 'Let shards poll at this interval only, instead of on every event' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l page -d 'Also write a page with charts of the scheduled run over time: latency target, measured percentile, speed and throughput' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l no-region -d 'Ignore the regions of a forebay.yaml: a mix of reads and writes then costs as much as its reads and its writes cost separately'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from swarm" -l seed -d 'The seed of the first scenario; the others follow' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from swarm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from replay" -l format -d 'How to print the results' -r -f -a "text\t'A table'
json\t'JSON'
yaml\t'YAML'"
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from replay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "run" -d 'Run a load on a simulated disk, and show what each job got'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "swarm" -d 'Run random scenarios, and check the scheduler\'s guarantees at every step'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "replay" -d 'Repeat a scenario that `forebay sim swarm` has printed'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand report" -l compare -d 'Results to show next to them, on the same scales' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand report" -s o -l out -d 'The file for the page or the picture (SVG)' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand report" -l latency-of -d 'Draw one picture instead of the page: the 99th percentile of this job\'s latency over time, a line for each run' -r
complete -c forebay -n "__fish_forebay_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l out -d 'Where to write the charts and index.html' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l report -d 'Write everything on one page too, with the datastore examples over time and with the values of all charts as JSON' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l seed -d 'Seed of loads and disks' -r
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l shards -d 'Number of shards, of 2025-parallelism and 2025-raid0-placement [default: as published]' -r
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l fibers -d 'Requests in flight of each shard, of the same experiments [default: 8]' -r
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l chunk -d 'Chunk size of the array, of the same experiments [default: 1MB]' -r
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l members -d 'Number of disks of the array, of the same experiments [default: 4]' -r
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l threads -d 'Number of experiments that run at the same time [default: one per processor]. The results do not depend on it' -r
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l format -d 'The output format: JSON has the published figures next to ours' -r -f -a "text\t'For people'
json\t'JSON'"
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l full -d 'Run each experiment for as long as the published one, instead of shortened'
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l json -d 'The same as --format json'
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l list -d 'List the experiments and stop'
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand disk; and not __fish_seen_subcommand_from serve help" -s h -l help -d 'Print help'
complete -c forebay -n "__fish_forebay_using_subcommand disk; and not __fish_seen_subcommand_from serve help" -f -a "serve" -d 'Serve a simulated disk as the file MOUNTPOINT/disk, on which any program can do I/O'
complete -c forebay -n "__fish_forebay_using_subcommand disk; and not __fish_seen_subcommand_from serve help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l disk -d 'The disk: a preset, a disk file, or a measured latency surface (.csv, .json)' -r
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l sector -d 'Size of a sector in bytes, 512 or 4096 [default: that of the disk]' -r
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l capacity -d 'Size of the disk, at most that of the simulated disk, which is the default' -r
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l backing -d 'Keep the data in this file, which is created or emptied, instead of in memory' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l memory -d 'The most data to keep in memory; writes beyond it fail with ENOSPC' -r
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l seed -d 'Seed of the disk' -r
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l volatile-cache -d 'Give the disk a volatile write cache of this size: a power cut loses a part of the writes that were not flushed. SIGUSR2 cuts the power, and turns it on again; in between all requests fail with EIO. --seed decides what is lost' -r
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l cut-after-writes -d 'Cut the power after this many writes' -r
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l io-properties -d 'Write the disk\'s rates to a properties file, for `forebay bench --properties`' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l loop -d 'Attach it as a block device too, which needs root and the program losetup'
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l no-realtime -d 'Do not ask for real-time priority; a busy machine then disturbs the timing'
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from help" -f -a "serve" -d 'Serve a simulated disk as the file MOUNTPOINT/disk, on which any program can do I/O'
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l device -d 'The disk, such as nvme0n1: not a partition, and not a device above disks' -r
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l goal -d 'The goal: CLASS:p95=2ms for reads, CLASS:writes:p95=5ms for writes; without a class for --calibrate' -r
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l properties -d 'The properties of the disk: a forebay.yaml of `forebay tune`, or an io-properties file' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l class -d 'A class: NAME=CGROUP:WEIGHT, or NAME=process:PATTERN:WEIGHT for processes with PATTERN in their titles, which are moved into a cgroup' -r
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l rate -d 'The rate of the setting, in percent of the model, as --calibrate found it' -r
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l bound -d 'The latency above which the kernel lowers that rate, as a multiple of the goal, or off; as --calibrate found it' -r
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l dir -d 'The place for the files of --calibrate: a directory on the disk, or with --overwrite-device the disk' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l restore -d 'Restore the settings that a killed governor of this disk has changed' -r
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l calibrate -d 'Find the settings that meet the goal and leave the most to other classes, in at most five minutes'
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l grid -d 'Measure each setting of a grid once instead of searching, which takes six minutes'
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l overwrite-device -d 'Allow the data on the disk named with --dir to be destroyed'
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l dry-run -d 'Print what would be done, and change nothing'
complete -c forebay -n "__fish_forebay_using_subcommand govern" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l empty-trash -d 'Free the files that an earlier `forebay rm`, or another program, left in the trash of this directory' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l rate -d 'Free at most this many bytes per second, such as 500MB [default, without --commands and --disk-share: 256 MB and 512 discards per second, and more if the file system is nearly full]' -r
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l commands -d 'Send at most this many discards per second: each frees an extent, or a part of one' -r
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l disk-share -d 'Limit discards to this share of the disk\'s time, such as 20%, by the costs of bytes and commands in --properties' -r
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l properties -d 'The properties of the disk: a file that `forebay tune` wrote' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l latency-goal -d 'The longest time for which a step may keep the disk busy, by the costs in --properties' -r
complete -c forebay -n "__fish_forebay_using_subcommand rm" -s r -s R -l recursive -d 'Delete directories with their contents'
complete -c forebay -n "__fish_forebay_using_subcommand rm" -s f -l force -d 'Ignore paths that do not exist'
complete -c forebay -n "__fish_forebay_using_subcommand rm" -s v -l verbose -d 'Print what happens to each path'
complete -c forebay -n "__fish_forebay_using_subcommand rm" -s n -l dry-run -d 'Delete nothing; print what would be done, and how long it would take'
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l cross-file-systems -d 'Delete in file systems that are mounted below the directories too'
complete -c forebay -n "__fish_forebay_using_subcommand rm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand run" -l class -d 'The class: up to 64 letters, digits, and characters of `_.-`' -r
complete -c forebay -n "__fish_forebay_using_subcommand run" -l weight -d 'The weight of the class, compared with other cgroups of the same level' -r
complete -c forebay -n "__fish_forebay_using_subcommand run" -l device -d 'A disk to check, such as sda [default: all disks]' -r
complete -c forebay -n "__fish_forebay_using_subcommand run" -l ionice -d 'Set an I/O priority too, for BFQ and mq-deadline: idle up to a weight of 100, best effort 4 below 1000, else best effort 0'
complete -c forebay -n "__fish_forebay_using_subcommand run" -l require -d 'Do not run the command if the weight has no effect on a disk: exit code 125'
complete -c forebay -n "__fish_forebay_using_subcommand run" -l list -d 'List the classes with their weights, processes, and bytes read and written'
complete -c forebay -n "__fish_forebay_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and not __fish_seen_subcommand_from requests discards help" -s h -l help -d 'Print help'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and not __fish_seen_subcommand_from requests discards help" -f -a "requests" -d 'Show how requests are aligned, where the kernel splits them and what that costs'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and not __fish_seen_subcommand_from requests discards help" -f -a "discards" -d 'Count the discards (TRIMs) that the kernel sends to disks, per tenth of a second, and report their bursts and the period of the bursts'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and not __fish_seen_subcommand_from requests discards help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l device -d 'A block device; the disks below a partition, dm or md device are traced too [default, without --dir: all disks]' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l dir -d 'A directory: the disks below its file system are traced' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l duration -d 'The duration of the trace, without a command' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l after -d 'The time to continue after the command has ended' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l from -d 'A recorded trace instead: text of blkparse, btrace, perf script, trace-cmd report, or the kernel\'s trace_pipe; - for stdin' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l chunk -d 'The chunk size of the array, at whose borders requests are split [default: as the kernel states it, or as derived from the splits]' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l members -d 'The number of disks of a RAID0, to report disks with more than 1.5 times their part of the requests in flight [default: as the kernel states it]' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l block -d 'The block size of the disk: requests that begin or end within a block are misaligned' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l report -d 'Write a page with tables and charts too' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -s o -l output -d 'The file for the results, instead of stdout, to which the command writes too' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l format -d 'The output format' -r -f -a "text\t'For people'
json\t'JSON'"
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l json -d 'The same as --format json'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l device -d 'A block device; the disks below a partition, dm or md device are traced too [default, without --dir: all disks]' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l dir -d 'A directory: the disks below its file system are traced' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l duration -d 'The duration of the trace, without a command' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l after -d 'The time to continue after the command has ended' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l from -d 'A recorded trace instead: text of blkparse, btrace, perf script, trace-cmd report, or the kernel\'s trace_pipe; - for stdin' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -s o -l output -d 'The file for the results, instead of stdout, to which the command writes too' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l format -d 'The output format' -r -f -a "text\t'For people'
json\t'JSON'"
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l json -d 'The same as --format json'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "requests" -d 'Show how requests are aligned, where the kernel splits them and what that costs'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "discards" -d 'Count the discards (TRIMs) that the kernel sends to disks, per tenth of a second, and report their bursts and the period of the bursts'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand trim" -l rate -d 'Discard at most this many bytes per second, such as 500MB' -r
complete -c forebay -n "__fish_forebay_using_subcommand trim" -l disk-share -d 'Limit discards to this share of the disk\'s time [default: 10%]' -r
complete -c forebay -n "__fish_forebay_using_subcommand trim" -l latency-goal -d 'The longest time for which a step may keep the disk busy, by the costs of discards in --properties' -r
complete -c forebay -n "__fish_forebay_using_subcommand trim" -l min-len -d 'Skip free extents that are shorter than this' -r
complete -c forebay -n "__fish_forebay_using_subcommand trim" -l properties -d 'The properties of the disk: a file that `forebay tune` wrote' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trim" -s n -l dry-run -d 'Discard nothing; print what would be done, and how long it would take'
complete -c forebay -n "__fish_forebay_using_subcommand trim" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "bench" -d 'Run a load on a disk, and show what each job got'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "top" -d 'Show the disks, classes and problems of a running process, from the metrics that it serves (for example with `bench --metrics`)'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "check" -d 'Look for settings of kernel, filesystem and disk that cost throughput or latency'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "info" -d 'Show the settings that the scheduler derives from a disk\'s rates'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "tune" -d 'Measure disks, and write the files that describe them to the scheduler'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "explore" -d 'Find out which mixes of reads and writes a disk serves within a latency goal'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "export" -d 'Serve the properties of a machine\'s disks, and the findings of `check`, as metrics'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "sim" -d 'Run the scheduler on simulated disks, under a virtual clock'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "report" -d 'Make a page from results that `bench` or `sim run` printed with --format json'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "reproduce" -d 'Repeat the published experiments on simulated disks, and compare their figures'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "disk" -d 'Serve simulated disks in real time'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "govern" -d 'Meet a latency goal for unmodified programs with the kernel\'s io.cost. Needs root'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "rm" -d 'Delete files at a pace, so that the discards (TRIMs) that follow delay no reads'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "run" -d 'Run a command in a cgroup with an I/O weight for io.cost or BFQ'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "trace" -d 'Show what the kernel sends to disks, from its block tracepoints. Needs root, except with --from'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "trim" -d 'Discard the free space of a file system, like fstrim, but at a limited rate'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "run" -d 'Run a load on a simulated disk, and show what each job got'
complete -c forebay -n "__fish_forebay_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "swarm" -d 'Run random scenarios, and check the scheduler\'s guarantees at every step'
complete -c forebay -n "__fish_forebay_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "replay" -d 'Repeat a scenario that `forebay sim swarm` has printed'
complete -c forebay -n "__fish_forebay_using_subcommand help; and __fish_seen_subcommand_from disk" -f -a "serve" -d 'Serve a simulated disk as the file MOUNTPOINT/disk, on which any program can do I/O'
complete -c forebay -n "__fish_forebay_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "requests" -d 'Show how requests are aligned, where the kernel splits them and what that costs'
complete -c forebay -n "__fish_forebay_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "discards" -d 'Count the discards (TRIMs) that the kernel sends to disks, per tenth of a second, and report their bursts and the period of the bursts'
