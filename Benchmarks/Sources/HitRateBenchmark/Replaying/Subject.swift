// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Harness
internal import HoldfastSimulation
internal import HoldfastStorage

/// A policy, or a bound that knows the future.
struct Subject: Sendable, Hashable {
    enum Form: Sendable, Hashable {
        case policy(EvictionStrategy)
        case bound(BeladyBound.Rule)
    }

    let form: Form

    /// The name on the command line and in the results.
    var name: String {
        switch form {
        case .policy(let strategy): strategy.description
        case .bound(let rule): rule.description
        }
    }

    /// All subjects: the defaults of the tiers first, the bounds last.
    static let all: [Subject] =
        EvictionStrategy.all.map { Subject(form: .policy($0)) }
        + [BeladyBound.Rule.furthest, .largest].map { Subject(form: .bound($0)) }

    /// Whether it knows the future.
    var isBound: Bool {
        switch form {
        case .policy: false
        case .bound: true
        }
    }

    /// Creates the subject with this name.
    init?(named name: String) {
        if let strategy = EvictionStrategy(named: name) {
            form = .policy(strategy)
        } else {
            guard let found = Self.all.first(where: { $0.name == name }) else { return nil }
            self = found
        }
    }

    private init(form: Form) {
        self.form = form
    }

    /// Parses names separated by commas, each used once; `all` or nothing stands for all subjects.
    static func list(_ texts: [String]) throws(CommandOptions.Misuse) -> [Subject] {
        var subjects: [Subject] = []
        for name in texts.isEmpty ? ["all"] : texts.flatMap({ $0.split(separator: ",").map(String.init) }) {
            let found = name == "all" ? all : [Subject(named: name)].compactMap { $0 }
            if found.isEmpty {
                let names = all.map(\.name).joined(separator: ", ")
                throw CommandOptions.Misuse("There is no policy '\(name)'; the policies are all, \(names).")
            }
            subjects += found.filter { !subjects.contains($0) }
        }
        return subjects
    }
}
