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
complete -c forebay -n "__fish_forebay_needs_command" -f -a "top" -d 'Show the disks and classes of a running process, and what is wrong, from the metrics that it serves (as `bench --metrics` does)'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "check" -d 'Look for settings of kernel, filesystem and disk that cost throughput or latency'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "info" -d 'Show the settings that the scheduler derives from a disk\'s rates'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "tune" -d 'Measure disks, and write the files that describe them to the scheduler'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "explore" -d 'Find out which mixes of reads and writes a disk serves within a latency goal'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "export" -d 'Serve what the disks of a machine can do, and what `check` finds, as metrics'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "sim" -d 'Run the scheduler on simulated disks, under a virtual clock'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "report" -d 'Make a page of results that `bench` or `sim run` printed with --format json'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "reproduce" -d 'Repeat the published experiments on simulated disks, alongside their figures'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "disk" -d 'Serve simulated disks in real time'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "govern" -d 'Keep a latency goal for programs that cannot be changed, by the kernel\'s io.cost. Needs root'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "rm" -d 'Delete files at a pace, so that the discards (TRIMs) that follow delay no reads'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "run" -d 'Run a command in a cgroup with an I/O weight, which io.cost or BFQ obeys'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "trace" -d 'Show what the kernel sends to disks, from its block tracepoints. Needs root, except with --from'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "trim" -d 'Tell the disk which space of a file system is free, as fstrim does, but at a pace'
complete -c forebay -n "__fish_forebay_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l sched-groups -d 'A file of priority classes for the jobs to run in, and of groups of these' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l duration -d 'How long to measure' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l warmup -d 'How long to run before measuring' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l shards -d 'Number of shards [default: one per processor; 2 on a simulated disk]' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l properties -d 'What the disk can do: an io-properties file, or a forebay.yaml [default: a real disk is probed for some seconds; a simulated one is known]' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l latency-goal -d 'How much disk time the window begins with, if the disk does not need more; trials change it from there. --latency-target bounds latencies [default: as much as the disk needs; 0.75ms with --control rates]' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l control -d 'What decides how much work --policy pace+window sends to the disk [default: adaptive]' -r -f -a "adaptive\t'Trials find the smallest window that gives the full throughput of the present mix of requests'
rates\t'The rates of the properties file: never faster than they say, with at most two effective goals of disk time in flight'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l fixed -d 'A constant window in disk time, and a constant pace as a factor on the rates of the properties file, or off; for comparisons. An example is window=1.5ms,pace=off' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l latency-target -d 'A latency target from enqueueing to completion, while others wait: a percentile of reads, such as p95=1ms or p99.9=2ms, or of writes, such as writes:p95=5ms; in the disk alone with disk:p95=1ms; or off. While it is missed, less is sent to the disk, as long as that improves the latency [default: that of --properties]' -r
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
off\t'Compare with nothing: there is one run'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l report -d 'Write a page with findings, totals and charts over time; results in JSON or YAML get the same series (`series`)' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l format -d 'How to print the results' -r -f -a "text\t'A table'
json\t'JSON'
yaml\t'YAML'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l grow -d 'Compare ways for files to grow, one file at a time and many at once, instead of running jobs [default: all ways; or name some, such as append,fallocate]' -r -f -a "append\t'Each write makes the file longer'
truncate\t'Files are set to their final length first (ftruncate), without blocks'
fallocate\t'Files get their length and their blocks first (fallocate)'
double\t'A write beyond the end doubles the length first'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l grow-files -d 'Number of files that grow at once in one directory' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l grow-size -d 'To what size each file grows' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l grow-request -d 'Bytes of a write to a file that grows' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l diff -d 'Compare two results of this command or of `sim run --format json`; with one file, compare it with this run. Exit code: 0 no regression, 1 a regression, 2 not comparable' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l fail-below -d 'Ignore regressions smaller than this, such as 5% [default: any that is statistically significant fails]' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l dir -d 'Where to make the files: a directory, /dev/null to measure the scheduler alone, or with --overwrite-device a block device' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l backend -d 'How requests get to the kernel' -r -f -a "auto\t'The first that is available of io_uring, linux-aio and threads'
io_uring\t'io_uring, or an error'
linux-aio\t'linux-aio, or an error'
threads\t'Threads that make blocking calls'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l topology -d 'How the threads of the load share the scheduler' -r -f -a "per-thread\t'Each thread has an I/O queue and does its own I/O'
shared\t'One I/O queue for all threads, which ask it for permits and do their own I/O'
coordinators\t'--io-queues threads with an I/O queue each do the I/O that all others send them'"
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l io-queues -d 'Number of threads that do the I/O with --topology coordinators [default: 1]. The scheduler uses fewer where a disk\'s window holds fewer than four reads of 4 KiB per thread' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l metrics -d 'Serve what the scheduler counts as OpenMetrics text over HTTP while the load runs, such as at 127.0.0.1:9180; port 0 for any that is free' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l share-device -d 'Use the Nth of M equal parts of the block device alone, such as 1/3, while other processes use the rest' -r
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l no-region -d 'Ignore the regions of a forebay.yaml: a mix of reads and writes costs the sum of what its reads and its writes cost alone'
complete -c forebay -n "__fish_forebay_using_subcommand bench" -l overwrite-device -d 'The data on the block device named with --dir may be destroyed'
complete -c forebay -n "__fish_forebay_using_subcommand bench" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand top" -l interval -d 'The interval that is counted; a live view is drawn as often' -r
complete -c forebay -n "__fish_forebay_using_subcommand top" -l format -d 'In which form to print one interval' -r -f -a "text\t'Lines for people, of 80 columns'
json\t'For programs'"
complete -c forebay -n "__fish_forebay_using_subcommand top" -l once -d 'Print one interval as text, and end'
complete -c forebay -n "__fish_forebay_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand check" -l format -d 'How to print what was found' -r -f -a "text\t'For people'
json\t'JSON'"
complete -c forebay -n "__fish_forebay_using_subcommand check" -s v -l verbose -d 'Show also what is as it should be'
complete -c forebay -n "__fish_forebay_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand info" -l properties -d 'What the disks can do: an io-properties file, or a forebay.yaml, which says more' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand info" -l disk -d 'A disk whose figures are known, or a disk file; more than once for several' -r
complete -c forebay -n "__fish_forebay_using_subcommand info" -l mountpoint -d 'Where the disk of --disk is mounted, for --format properties and io.cost' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand info" -l shards -d 'Number of shards [default: one per processor]' -r
complete -c forebay -n "__fish_forebay_using_subcommand info" -l numa-nodes -d 'Number of NUMA nodes [default: those of this machine]' -r
complete -c forebay -n "__fish_forebay_using_subcommand info" -l latency-goal -d 'How much disk time the window begins with, if the disk does not need more' -r
complete -c forebay -n "__fish_forebay_using_subcommand info" -l region-goal -d 'Of several regions in a forebay.yaml, take the one nearest to this latency of reads, such as p95=1ms [default: nearest to the latency target of reads, or else to the effective goal]' -r
complete -c forebay -n "__fish_forebay_using_subcommand info" -l latency-target -d 'A latency target while others wait: p95=1ms of reads from enqueueing to completion, writes:p95=5ms of writes, disk:p95=1ms in the disk alone, or off [default: that of --properties]' -r
complete -c forebay -n "__fish_forebay_using_subcommand info" -l format -d 'How to print it' -r -f -a "text\t'Text for people'
json\t'JSON'
properties\t'An io-properties file of the disks, or a forebay.yaml where one of them seeks or has a target'
io.cost\t'Settings for the kernel\'s io.cost (cgroup v2): its lines, a file for the hardware database of systemd, and units'"
complete -c forebay -n "__fish_forebay_using_subcommand info" -l list -d 'List machines and volumes of clouds that --disk knows by size, and where their figures come from'
complete -c forebay -n "__fish_forebay_using_subcommand info" -l no-region -d 'Ignore the regions of a forebay.yaml: a mix of reads and writes costs the sum of what its reads and its writes cost alone'
complete -c forebay -n "__fish_forebay_using_subcommand info" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l budget -d 'How long to measure [default: standard, with --watch quick]' -r -f -a "quick\t'About a minute, at most 64 GiB written: figures within some 10 %'
standard\t'About 3 minutes, up to 5 on a slow disk, at most 128 GiB written: figures within some 5 %'
thorough\t'Until the disk is steady, more than half an hour, at most 1 TiB written'"
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l watch -d 'Look for a volume\'s credits in the background for this many hours at most, 1 to 48: while others use the disk, for 2 % of the time. Needs no more once they have run out. Ctrl-C ends it with what is known' -r
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l write-limit -d 'The most to write to each disk, instead of what the budget allows, or with --watch 64GB' -r
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l out -d 'Directory for the files; it is made if it is missing' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l format -d 'What to print' -r -f -a "text\t'For people'
json\t'For programs'"
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l resume -d 'Go on with an interrupted measurement' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l fit-from -d 'Write the files from what an earlier run measured; nothing is measured' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l diff -d 'Compare two runs; with one file, measure now and compare with it. Exit code: 0 no regression, 1 a regression, 2 not comparable' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l history -d 'Keep the last 200 runs in a directory, compare this one with those before, and draw the rates over time there. Exit code as with --diff' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l fail-below -d 'Ignore regressions smaller than this, such as 5% [default: any that is statistically significant fails]' -r
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l simulate -d 'Measure a simulated disk, a preset or a disk file, under virtual time' -r
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l seed -d 'Seed of the simulated disk' -r
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l other-disk -d 'Compare runs of different disks too, as of two machines'
complete -c forebay -n "__fish_forebay_using_subcommand tune" -l overwrite-device -d 'DIR is a block device, and the data on it may be destroyed'
complete -c forebay -n "__fish_forebay_using_subcommand tune" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l from -d 'A surface measured earlier: CSV, or the result file (.json) of diskplorer' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l simulate -d 'Measure a simulated disk, a preset or a disk file, under virtual time' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l grid -d 'Measure all combinations of N rates of reads and N rates of writes, 4 to 32' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l seconds -d 'How long each load is measured, after a warm-up of a quarter of that, or a third on a simulated disk [default: 2s; on a simulated disk until 10,000 reads are seen]' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l read-size -d 'Bytes of a read' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l write-size -d 'Bytes of a write' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l data-size -d 'Bytes of data [default: 2GB below DIR, half to read and half to write; a whole simulated disk, for both]' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l trim-after -d 'On a simulated disk: discard what was written after this time, such as 10s' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l latency-of -d 'On a simulated disk: of which requests the latencies are. Regions in a forebay.yaml are of reads' -r -f -a "reads\t'Reads'
writes\t'Writes'"
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l combine -d 'On a simulated disk: what is combined. Regions in a forebay.yaml are of rates' -r -f -a "rates\t'Rates of writes and of reads'
reads\t'Rates of large reads, of --write-size, and of reads'
sizes\t'Sizes of writes and of reads up to --write-size and --read-size, at --at-rates'"
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l at-rates -d 'Where sizes are combined: reads and writes per second, such as 10000,2000' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l properties -d 'What the disk can do, which sets the highest rates: an io-properties file, or a forebay.yaml [default: the disk is probed for some seconds]' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l save -d 'Write the surface as CSV, which --from reads [default: explore.csv where DIR is measured; a file that is there is kept as explore.csv.old]' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l goal -d 'A goal: a percentile of reads and its longest latency, such as p95=1ms; may be given several times [default: p95 of 0.5, 1 and 2 ms, where the disk meets them]' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -s o -l output -d 'Replace the regions of this forebay.yaml, which `tune` has made' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l report -d 'Write a page with heat maps: the region, the straight line, and where they are wrong' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l svg -d 'Write the heat maps alone' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l what-if -d 'Say what classes of these loads would get of the disk in this forebay.yaml, by the region of reads and writes that it holds for --goal; with --simulate, alongside what the simulator says' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l load -d 'A class: its name, its shares, and what it does per second, reads of 4 KiB or bytes in writes of 128 KiB: such as queries:1000:reads=50000, log:200:writes=100MB (powers of 1024) or compaction:100:writes=max. More than once for several' -r
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l format -d 'How to print it' -r -f -a "text\t'For people'
json\t'JSON'"
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l full -d 'Measure all combinations of 21 rates of reads and 21 rates of writes'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l trim -d 'Discard what was written, by holes in files or discards on devices, at the rate of the writes'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l overwrite-device -d 'DIR is a block device, and the data on it may be destroyed'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l resume -d 'Go on with the interrupted measurement of DIR whose loads are kept alongside --save'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l other-disk -d 'Replace them even where the surface ends at less than half or more than twice the rates of that file'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -l json -d 'The same as --format json'
complete -c forebay -n "__fish_forebay_using_subcommand explore" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand export" -l properties -d 'What the disks can do: an io-properties file, or a forebay.yaml, which says more' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand export" -l listen -d 'Where to serve the metrics' -r
complete -c forebay -n "__fish_forebay_using_subcommand export" -l every -d 'How often to check the directories, and to read the file of --properties again' -r
complete -c forebay -n "__fish_forebay_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and not __fish_seen_subcommand_from run swarm replay help" -s h -l help -d 'Print help'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and not __fish_seen_subcommand_from run swarm replay help" -f -a "run" -d 'Run a load on a simulated disk, and show what each job got'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and not __fish_seen_subcommand_from run swarm replay help" -f -a "swarm" -d 'Run random scenarios, and check what the scheduler promises at every step'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and not __fish_seen_subcommand_from run swarm replay help" -f -a "replay" -d 'Run a scenario again that `forebay sim swarm` has printed'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and not __fish_seen_subcommand_from run swarm replay help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l sched-groups -d 'A file of priority classes for the jobs to run in, and of groups of these' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l duration -d 'How long to measure' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l warmup -d 'How long to run before measuring' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l shards -d 'Number of shards [default: one per processor; 2 on a simulated disk]' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l properties -d 'What the disk can do: an io-properties file, or a forebay.yaml [default: a real disk is probed for some seconds; a simulated one is known]' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l latency-goal -d 'How much disk time the window begins with, if the disk does not need more; trials change it from there. --latency-target bounds latencies [default: as much as the disk needs; 0.75ms with --control rates]' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l control -d 'What decides how much work --policy pace+window sends to the disk [default: adaptive]' -r -f -a "adaptive\t'Trials find the smallest window that gives the full throughput of the present mix of requests'
rates\t'The rates of the properties file: never faster than they say, with at most two effective goals of disk time in flight'"
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l fixed -d 'A constant window in disk time, and a constant pace as a factor on the rates of the properties file, or off; for comparisons. An example is window=1.5ms,pace=off' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l latency-target -d 'A latency target from enqueueing to completion, while others wait: a percentile of reads, such as p95=1ms or p99.9=2ms, or of writes, such as writes:p95=5ms; in the disk alone with disk:p95=1ms; or off. While it is missed, less is sent to the disk, as long as that improves the latency [default: that of --properties]' -r
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
off\t'Compare with nothing: there is one run'"
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l report -d 'Write a page with findings, totals and charts over time; results in JSON or YAML get the same series (`series`)' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l format -d 'How to print the results' -r -f -a "text\t'A table'
json\t'JSON'
yaml\t'YAML'"
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l disk -d 'The disk: a preset, a disk file, or a measured latency surface (.csv, .json)' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l tick -d 'Let shards poll at this interval only, instead of on every event' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l page -d 'Write a page with charts of the scheduled run too: latency target, measured percentile, speed and throughput over time' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -l no-region -d 'Ignore the regions of a forebay.yaml: a mix of reads and writes costs the sum of what its reads and its writes cost alone'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from swarm" -l seed -d 'The number of the first; those after it follow' -r
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from swarm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from replay" -l format -d 'How to print the results' -r -f -a "text\t'A table'
json\t'JSON'
yaml\t'YAML'"
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from replay" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "run" -d 'Run a load on a simulated disk, and show what each job got'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "swarm" -d 'Run random scenarios, and check what the scheduler promises at every step'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "replay" -d 'Run a scenario again that `forebay sim swarm` has printed'
complete -c forebay -n "__fish_forebay_using_subcommand sim; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand report" -l compare -d 'Results to show alongside them, on the same scales' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand report" -s o -l out -d 'Where the page or the picture (SVG) goes' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand report" -l latency-of -d 'Draw one picture instead of the page: the 99th percentile of this job\'s latency over time, a line for each run' -r
complete -c forebay -n "__fish_forebay_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l out -d 'Where to write the charts and index.html' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l report -d 'Write all on one page too, with the datastore examples over time and with all values of charts as JSON' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l seed -d 'Seed of loads and disks' -r
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l threads -d 'Number of experiments that run at the same time [default: one per processor]. The results do not depend on it' -r
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l format -d 'How to print what came out: as JSON, the published figures alongside ours' -r -f -a "text\t'For people'
json\t'JSON'"
complete -c forebay -n "__fish_forebay_using_subcommand reproduce" -l full -d 'Run each for as long as the published one, instead of shortened'
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
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l volatile-cache -d 'Give the disk a write cache of this size without a battery: writes that no flush has covered are lost in part when the power goes. SIGUSR2 cuts the power, and brings it back; without it everything fails with EIO. --seed says what is lost' -r
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l cut-after-writes -d 'Cut the power after this many writes' -r
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l io-properties -d 'Write the disk\'s rates to a properties file, for `forebay bench --properties`' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l loop -d 'Make a block device of it as well, which needs root and the program losetup'
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -l no-realtime -d 'Do not ask for real-time priority; a busy machine then disturbs the timing'
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from help" -f -a "serve" -d 'Serve a simulated disk as the file MOUNTPOINT/disk, on which any program can do I/O'
complete -c forebay -n "__fish_forebay_using_subcommand disk; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l device -d 'The disk, such as nvme0n1: no partition, and nothing made of disks' -r
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l goal -d 'The goal: CLASS:p95=2ms of reads, CLASS:writes:p95=5ms; without a class for --calibrate' -r
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l properties -d 'What the disk can do: a forebay.yaml of `forebay tune`, or an io-properties file' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l class -d 'A class: NAME=CGROUP:WEIGHT, or NAME=process:PATTERN:WEIGHT for processes with PATTERN in their titles, which are moved into a cgroup' -r
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l rate -d 'The rate of the setting, in percent of the model; --calibrate finds it' -r
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l bound -d 'From which latency on the kernel lowers that rate, in goals, or off; --calibrate finds it too' -r
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l dir -d 'Where --calibrate makes its files: a directory on the disk, or with --overwrite-device the disk' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l restore -d 'Put back what a governor of this disk has changed' -r
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l calibrate -d 'Find the settings that keep the goal and leave the most to others, in at most five minutes'
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l grid -d 'Measure each setting of a grid once instead of searching, which takes six minutes'
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l overwrite-device -d 'The data on the disk named with --dir may be destroyed'
complete -c forebay -n "__fish_forebay_using_subcommand govern" -l dry-run -d 'Say what would be done, and change nothing'
complete -c forebay -n "__fish_forebay_using_subcommand govern" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l empty-trash -d 'Free what an earlier `forebay rm`, or another program, left in the trash in this directory' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l rate -d 'Free at most this many bytes per second, such as 500MB [default, without --commands and --disk-share: 256 MB and 512 discards per second, and more where the file system is nearly full]' -r
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l commands -d 'Send at most this many discards per second: each frees an extent, or a part of one' -r
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l disk-share -d 'Limit discards to this share of the disk\'s time, such as 20%. Bytes and commands are counted, each at the cost in --properties' -r
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l properties -d 'What the disk can do: a file that `forebay tune` has written' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l latency-goal -d 'How long a step may keep the disk busy, by what --properties says' -r
complete -c forebay -n "__fish_forebay_using_subcommand rm" -s r -s R -l recursive -d 'Delete directories with all that is in them'
complete -c forebay -n "__fish_forebay_using_subcommand rm" -s f -l force -d 'Ignore paths that do not exist'
complete -c forebay -n "__fish_forebay_using_subcommand rm" -s v -l verbose -d 'Print what is done with each path'
complete -c forebay -n "__fish_forebay_using_subcommand rm" -s n -l dry-run -d 'Delete nothing: print what would be done, and how long it would take'
complete -c forebay -n "__fish_forebay_using_subcommand rm" -l cross-file-systems -d 'Go into file systems that are mounted in the directories'
complete -c forebay -n "__fish_forebay_using_subcommand rm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand run" -l class -d 'The class: up to 64 letters, digits, and characters of `_.-`' -r
complete -c forebay -n "__fish_forebay_using_subcommand run" -l weight -d 'The weight of the class, compared with other cgroups of the same level' -r
complete -c forebay -n "__fish_forebay_using_subcommand run" -l device -d 'A disk that has to obey, such as sda [default: all disks]' -r
complete -c forebay -n "__fish_forebay_using_subcommand run" -l ionice -d 'Give it an I/O priority too, which BFQ and mq-deadline obey: idle up to a weight of 100, best effort 4 below 1000, else best effort 0'
complete -c forebay -n "__fish_forebay_using_subcommand run" -l require -d 'Do not run the command where a disk does not obey the weight: exit code 125'
complete -c forebay -n "__fish_forebay_using_subcommand run" -l list -d 'List the classes, their weights and processes, and what they have read and written'
complete -c forebay -n "__fish_forebay_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and not __fish_seen_subcommand_from requests discards help" -s h -l help -d 'Print help'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and not __fish_seen_subcommand_from requests discards help" -f -a "requests" -d 'Show how requests are aligned, where the kernel splits them and what that costs'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and not __fish_seen_subcommand_from requests discards help" -f -a "discards" -d 'Count the discards (TRIMs) that the kernel sends to disks, per tenth of a second, and name their bursts and the period of these'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and not __fish_seen_subcommand_from requests discards help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l device -d 'A block device; the disks below a partition, dm or md device are traced too [default, without --dir: all disks]' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l dir -d 'A directory: the disks below its file system are traced' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l duration -d 'How long to trace, without a command' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l after -d 'How long to go on after the command has ended' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l from -d 'A recorded trace instead: text of blkparse, btrace, perf script, trace-cmd report, or the kernel\'s trace_pipe; - for stdin' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l chunk -d 'Size of a chunk of the array, at whose borders requests are split [default: what the kernel says, or what the splits have in common]' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l members -d 'Number of disks of a RAID0: names disks that have more than 1.5 times their part of what is in flight [default: what the kernel says]' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l block -d 'Bytes of a block of the disk: what begins or ends inside of one is misaligned' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l report -d 'Write a page with tables and charts too' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -s o -l output -d 'A file for what was seen, instead of stdout, which the command writes to as well' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l format -d 'How to print what was seen' -r -f -a "text\t'For people'
json\t'JSON'"
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -l json -d 'The same as --format json'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from requests" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l device -d 'A block device; the disks below a partition, dm or md device are traced too [default, without --dir: all disks]' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l dir -d 'A directory: the disks below its file system are traced' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l duration -d 'How long to trace, without a command' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l after -d 'How long to go on after the command has ended' -r
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l from -d 'A recorded trace instead: text of blkparse, btrace, perf script, trace-cmd report, or the kernel\'s trace_pipe; - for stdin' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -s o -l output -d 'A file for what was seen, instead of stdout, which the command writes to as well' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l format -d 'How to print what was seen' -r -f -a "text\t'For people'
json\t'JSON'"
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -l json -d 'The same as --format json'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from discards" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "requests" -d 'Show how requests are aligned, where the kernel splits them and what that costs'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "discards" -d 'Count the discards (TRIMs) that the kernel sends to disks, per tenth of a second, and name their bursts and the period of these'
complete -c forebay -n "__fish_forebay_using_subcommand trace; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand trim" -l rate -d 'Discard at most this many bytes per second, such as 500MB' -r
complete -c forebay -n "__fish_forebay_using_subcommand trim" -l disk-share -d 'Limit discards to this share of the disk\'s time [default: 10%]' -r
complete -c forebay -n "__fish_forebay_using_subcommand trim" -l latency-goal -d 'How long a step may keep the disk busy, by what --properties says that discards take' -r
complete -c forebay -n "__fish_forebay_using_subcommand trim" -l min-len -d 'Skip free extents that are shorter than this' -r
complete -c forebay -n "__fish_forebay_using_subcommand trim" -l properties -d 'What the disk can do: a file that `forebay tune` has written' -r -F
complete -c forebay -n "__fish_forebay_using_subcommand trim" -s n -l dry-run -d 'Discard nothing: print what would be done, and how long it would take'
complete -c forebay -n "__fish_forebay_using_subcommand trim" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "bench" -d 'Run a load on a disk, and show what each job got'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "top" -d 'Show the disks and classes of a running process, and what is wrong, from the metrics that it serves (as `bench --metrics` does)'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "check" -d 'Look for settings of kernel, filesystem and disk that cost throughput or latency'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "info" -d 'Show the settings that the scheduler derives from a disk\'s rates'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "tune" -d 'Measure disks, and write the files that describe them to the scheduler'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "explore" -d 'Find out which mixes of reads and writes a disk serves within a latency goal'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "export" -d 'Serve what the disks of a machine can do, and what `check` finds, as metrics'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "sim" -d 'Run the scheduler on simulated disks, under a virtual clock'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "report" -d 'Make a page of results that `bench` or `sim run` printed with --format json'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "reproduce" -d 'Repeat the published experiments on simulated disks, alongside their figures'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "disk" -d 'Serve simulated disks in real time'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "govern" -d 'Keep a latency goal for programs that cannot be changed, by the kernel\'s io.cost. Needs root'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "rm" -d 'Delete files at a pace, so that the discards (TRIMs) that follow delay no reads'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "run" -d 'Run a command in a cgroup with an I/O weight, which io.cost or BFQ obeys'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "trace" -d 'Show what the kernel sends to disks, from its block tracepoints. Needs root, except with --from'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "trim" -d 'Tell the disk which space of a file system is free, as fstrim does, but at a pace'
complete -c forebay -n "__fish_forebay_using_subcommand help; and not __fish_seen_subcommand_from bench top check info tune explore export sim report reproduce disk govern rm run trace trim help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c forebay -n "__fish_forebay_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "run" -d 'Run a load on a simulated disk, and show what each job got'
complete -c forebay -n "__fish_forebay_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "swarm" -d 'Run random scenarios, and check what the scheduler promises at every step'
complete -c forebay -n "__fish_forebay_using_subcommand help; and __fish_seen_subcommand_from sim" -f -a "replay" -d 'Run a scenario again that `forebay sim swarm` has printed'
complete -c forebay -n "__fish_forebay_using_subcommand help; and __fish_seen_subcommand_from disk" -f -a "serve" -d 'Serve a simulated disk as the file MOUNTPOINT/disk, on which any program can do I/O'
complete -c forebay -n "__fish_forebay_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "requests" -d 'Show how requests are aligned, where the kernel splits them and what that costs'
complete -c forebay -n "__fish_forebay_using_subcommand help; and __fish_seen_subcommand_from trace" -f -a "discards" -d 'Count the discards (TRIMs) that the kernel sends to disks, per tenth of a second, and name their bursts and the period of these'
