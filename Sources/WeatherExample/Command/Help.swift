// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// What `--help` prints.
enum Help {
    static let text = """
        usage: weather-example [options]

        Runs one dashboard job with each client that people have, before and after the one line that puts Holdfast behind
        it, and prints what each run cost. The job: several people look several times at a list of stations, and at the
        current weather and two forecasts of each. The service is a small process on this machine that has ETags and rate
        limits, and that is short of capacity now and then.

        options:
          --url URL         a weather service that runs already; by default one is started and ended
          --client LIST     some of urlsession, async-http-client, generated (default: all whose traits are on)
          --users N         people at once (default 4)
          --rounds N        how often each of them looks (default 5)
          --pause-ms N      time between two looks (default 1100)
          --delay-ms N      time that the started service takes for an answer (default 30)
          --quick           2 rounds
          --json            print the table as JSON, and nothing else, to standard output
          --help            print this

        columns:
          requests      what the service saw
          bytes         bytes of content that it sent
          304s, 429s    answers of these kinds that it gave
          failed        calls that ended in an error or a status of 400 or more
          time          of the whole job, the pauses included
          bytes saved   bytes of content that came from the cache
          time saved    waiting for the service that hits of the cache spared, summed over all calls

        exit status: 0 when the runs were made, whatever they showed; 64 for a wrong command line, or for a named client
        whose trait is off; 1 when there is no service
        """
}
