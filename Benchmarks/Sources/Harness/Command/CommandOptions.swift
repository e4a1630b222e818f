// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The parsed command line of a benchmark.
///
/// Every benchmark has `--json`, `--quick`, `--help`, `--case`, `--subject` and `--directory`, and can add its own options by
/// name. An option and its value are two arguments or one (`--rounds 3`, `--rounds=3`).
public struct CommandOptions: Sendable, Equatable {
    /// A wrong argument, with advice; the process exits with ``exitStatus``.
    public struct Misuse: Error, Sendable, Equatable, CustomStringConvertible {
        /// EX_USAGE from sysexits.
        public static let exitStatus: Int32 = 64

        /// What was wrong and what to write instead.
        public let description: String

        /// Creates a misuse with this text.
        public init(_ description: String) {
            self.description = description
        }
    }

    /// Print one JSON object instead of the tables.
    public var wantsJSON = false
    /// Measure less, so that the run ends within 45 seconds.
    public var isQuick = false
    /// Print the usage and do nothing else.
    public var wantsHelp = false
    /// Only the cases with these names; empty: all.
    public var cases: [String] = []
    /// Only the subjects with these names; empty: all.
    public var subjects: [String] = []
    /// The directory for files; nil: a directory beside the current one.
    public var directory: String?
    /// Whole numbers of the benchmark's own options, by name without the dashes.
    public var numbers: [String: Int] = [:]
    /// Text values of the benchmark's own options, by name without the dashes, in the given order.
    public var words: [String: [String]] = [:]

    /// The given options of the benchmark that take no value, by name without the dashes.
    public var flags: Set<String> = []

    /// Parses the arguments.
    ///
    /// - Parameters:
    ///   - words: The arguments after the program's name.
    ///   - numberOptions: Names (without dashes) of options whose value is a whole number, 0 or more.
    ///   - wordOptions: Names (without dashes) of options whose value is text; each may be repeated.
    ///   - flagOptions: Names (without dashes) of options that take no value.
    /// - Throws: ``Misuse`` for an unknown option, a missing or malformed value, or an argument that is not an option.
    public init(
        parsing words: [String],
        numberOptions: Set<String> = [],
        wordOptions: Set<String> = [],
        flagOptions: Set<String> = []
    ) throws(Misuse) {
        var rest = words[...]
        while let word = rest.popFirst() {
            guard word.hasPrefix("--") else {
                throw Misuse("'\(word)' is not an option; --help lists the options.")
            }
            let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            let attached = parts.count > 1 ? String(parts[1]) : nil
            switch name {
            case "json", "quick", "help":
                guard attached == nil else { throw Misuse("--\(name) takes no value.") }
                if name == "json" { wantsJSON = true }
                if name == "quick" { isQuick = true }
                if name == "help" { wantsHelp = true }
            case _ where flagOptions.contains(name):
                guard attached == nil else { throw Misuse("--\(name) takes no value.") }
                flags.insert(name)
            case "case":
                cases += Self.names(try Self.value(of: name, attached, &rest))
            case "subject":
                subjects += Self.names(try Self.value(of: name, attached, &rest))
            case "directory":
                directory = try Self.value(of: name, attached, &rest)
            case _ where wordOptions.contains(name):
                self.words[name, default: []].append(try Self.value(of: name, attached, &rest))
            default:
                guard numberOptions.contains(name) else {
                    throw Misuse("--\(name) is unknown; --help lists the options.")
                }
                let text = try Self.value(of: name, attached, &rest)
                guard let number = Int(text), number >= 0 else {
                    throw Misuse("--\(name) needs a whole number, 0 or more, not '\(text)'.")
                }
                numbers[name] = number
            }
        }
    }

    /// Checks the names given to `--case` and `--subject` against the existing ones.
    ///
    /// A case can also be given by its beginning up to a hyphen or an at sign: `get` stands for `get-1KiB` and its siblings,
    /// `get-1KiB` also for `get-1KiB@2`.
    ///
    /// - Throws: ``Misuse`` with the first unknown name and the known ones.
    public func check(cases knownCases: [String], subjects knownSubjects: [String]) throws(Misuse) {
        for name in cases where !knownCases.contains(where: { Self.covers(name, $0) }) {
            throw Misuse("There is no case '\(name)'; the cases are \(knownCases.joined(separator: ", ")).")
        }
        for name in subjects where !knownSubjects.contains(name) {
            throw Misuse("There is no subject '\(name)'; the subjects are \(knownSubjects.joined(separator: ", ")).")
        }
    }

    /// Whether to measure a case.
    public func includes(case name: String) -> Bool {
        cases.isEmpty || cases.contains { Self.covers($0, name) }
    }

    /// Whether to measure a subject.
    public func includes(subject name: String) -> Bool {
        subjects.isEmpty || subjects.contains(name)
    }

    private static func covers(_ given: String, _ name: String) -> Bool {
        given == name || name.hasPrefix(given + "-") || name.hasPrefix(given + "@")
    }

    private static func names(_ value: String) -> [String] {
        value.split(separator: ",").map(String.init)
    }

    private static func value(
        of name: String,
        _ attached: String?,
        _ rest: inout ArraySlice<String>
    ) throws(Misuse) -> String {
        let next = attached == nil ? rest.popFirst() : nil
        guard let value = attached ?? next, !value.isEmpty, attached != nil || !value.hasPrefix("--") else {
            throw Misuse("--\(name) needs a value.")
        }
        return value
    }
}
