// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What `--help` prints.
enum Help {
    static let text = """
        usage: quickstart [options]
               quickstart [options] URL…

        Replays one load of HTTP calls four times and prints what each run cost:

          bare            a plain client
          retries         with retries: exponential backoff, full jitter, 8 attempts at most
          cache+retries   with a cache on disk as well, empty at first
          from disk       the same again, from the disk that the third run left

        Without URLs an origin in this process is asked. Some of its resources may be kept (max-age), some must be
        revalidated (ETag), some vary by language, some may not be stored; and it fails a share of what is sent to it: by
        503, with and without Retry-After, or by a dropped connection. The calls follow a Zipf distribution: few resources
        are asked for often, most of them rarely.

        With URLs these are loaded over URLSession, each of them once before anything else; nothing is made to fail. In the
        last run the first call of each URL asks for revalidation, so that a server with validators answers 304 to a client
        that was started anew.

        options:
          --calls N         calls of each run (default 4000; 200 with URLs)
          --resources N     resources of the built-in origin (default 300)
          --concurrency N   calls in flight at once (default 16)
          --seed N          what all chance derives from (default 9111)
          --fail-share P    share of sends that the built-in origin fails, 0 to 0.9 (default 0.08)
          --directory PATH  keep the disk cache in PATH/holdfast-quickstart, which is emptied at the start and stays;
                            by default it lies in a temporary directory that is removed at the end
          --quick           fewer calls, fewer resources
          --json            print the table as JSON, and nothing else, to standard output
          --help            print this

        columns:
          calls           what the program asked for
          sent            requests that reached the origin, counted by the origin itself (with URLs: by the transport)
          failed          calls that ended in an error or a status of 500 or more
          hit rate        calls answered from the store without waiting for the origin, of all that were looked up
          byte hit rate   the same, weighed by body bytes
          bytes saved     body bytes that came from the store instead of the network, after a 304 included
          p50, p99        time of a call, its body read to the end; half and 99 % of the calls took no longer

        exit status: 0 when the runs were made, whatever they showed; 64 for a wrong command line; 1 when a URL gives no
        answer or the directory cannot be used; 130 after Control-C
        """
}
