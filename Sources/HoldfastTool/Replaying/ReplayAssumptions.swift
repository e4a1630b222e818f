// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser
    internal import HoldfastSemantics

    /// What a replay takes for granted where its input does not say.
    struct ReplayAssumptions: Sendable {
        /// How long an answer of an access log is fresh; nil: for ever.
        var lifetime: Duration? = .seconds(3_600)
        /// The same for errors; zero: they are not kept.
        var errorLifetime: Duration = .zero
        /// For whom the cache keeps what a HAR file has.
        var mode: CacheOptions.Mode = .private
        /// Whether what the requests of a HAR file ask of caches is left out.
        var ignoresReloads = false
        /// How many requests are held in memory.
        var keptRequests = 5_000_000

        /// The assumptions that a replay of this input rests on, a sentence each.
        func sentences(_ input: InputReader.Input) -> [String] {
            var sentences = input.format == .har ? harSentences : input.format == .trace ? traceSentences : logSentences
            sentences.append(
                "Sizes of caches are those of bodies alone; the memory store needs about 1 kB more for each entry."
            )
            if input.rate < 1 {
                let share = "1 in \(Int((1 / input.rate).rounded()))"
                sentences.append(
                    "Only \(share) objects is replayed, chosen by a hash, in caches smaller by the same factor; --keep sets the number."
                )
            }
            if input.cut > 0 {
                sentences.append(
                    "The last \(input.cut) requests are left out for want of room; --keep sets the number."
                )
            }
            return sentences
        }

        private var logSentences: [String] {
            let life = lifetime.map { "for \(TimeSpan($0))" } ?? "for ever"
            let errors =
                errorLifetime > .zero
                ? "404 and the like for \(TimeSpan(errorLifetime))" : "404 and other errors are not kept"
            return [
                "A log has no header fields: GET answers of status 200, 203, 204, 300, 301, 308 are kept and fresh \(life) "
                    + "(--assume-fresh-for); \(errors) (--assume-errors-fresh-for).",
                "The key is the URL with its query as it is; everyone gets the same answer.",
                "An object's size is the largest of its answers in the log; a 304 counts as a request for the whole object.",
            ]
        }

        private var harSentences: [String] {
            [
                "Kept, fresh and reusable is what RFC 9111 says of the fields, for a \(mode == .shared ? "shared" : "private") cache (--mode).",
                ignoresReloads
                    ? "Cache-Control, Pragma and conditions of the requests are left out (--ignore-reloads)."
                    : "A request that asks for validation, as a reload does, is no hit in a cache of any size (--ignore-reloads leaves that out).",
                "An object's size is the largest of its answers; a 304 counts as a request for the whole object.",
            ]
        }

        private var traceSentences: [String] {
            [
                "Each request is for something that may be kept and never expires.",
                "Another size of the same key is another version: a miss.",
            ]
        }
    }

    /// A length of time, or for ever.
    struct AssumedLifetime: ExpressibleByArgument, Sendable, Hashable {
        /// The length; nil: for ever.
        let duration: Duration?
        let defaultValueDescription: String

        init(_ duration: Duration?) {
            self.duration = duration
            defaultValueDescription = duration.map { "\(TimeSpan($0))" } ?? "forever"
        }

        init?(argument: String) {
            if argument == "forever" {
                duration = nil
            } else {
                guard let span = TimeSpan(argument: argument) else { return nil }
                duration = span.duration
            }
            defaultValueDescription = argument
        }
    }
#endif
