// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import HoldfastCommand
    internal import HoldfastSimulation
    internal import HoldfastStorage

    /// Who decides what leaves a cache that is full: a policy, or a bound that knows the future.
    struct ReplayPolicy: Sendable, Hashable {
        enum Form: Sendable, Hashable {
            case policy(EvictionStrategy)
            case bound(BeladyBound.Rule)
        }

        /// The name on the command line and in the results.
        let name: String
        let form: Form

        /// All there are, the default of the library first and the bounds last.
        static let all: [ReplayPolicy] =
            [ReplayPolicy(name: "density", form: .policy(.memory))]
            + [EvictionStrategy.lru, .sieve, .s3fifo].map { ReplayPolicy(name: $0.description, form: .policy($0)) }
            + [ReplayPolicy(name: "w-tinylfu", form: .policy(.wtinylfu))]
            + [EvictionStrategy.gdsf, .fifo, .disk].map { ReplayPolicy(name: $0.description, form: .policy($0)) }
            + [BeladyBound.Rule.furthest, .largest].map { ReplayPolicy(name: $0.description, form: .bound($0)) }

        /// Reads names between commas, each once; `all` stands for all there are.
        static func list(_ text: String) throws(CommandFailure) -> [ReplayPolicy] {
            var policies: [ReplayPolicy] = []
            for word in text.split(separator: ",", omittingEmptySubsequences: false) {
                let found = word == "all" ? all : all.filter { $0.name == word }
                if found.isEmpty {
                    let names = all.map(\.name).joined(separator: ", ")
                    throw .usage("there is no policy '\(word)'; the policies are \(names), and all")
                }
                policies += found.filter { !policies.contains($0) }
            }
            return policies
        }

        /// Whether it knows the future.
        var isBound: Bool {
            if case .bound = form { return true }
            return false
        }
    }
#endif
