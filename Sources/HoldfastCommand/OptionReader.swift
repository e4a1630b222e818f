// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Splits a command line into options with their values, and operands.
///
/// `--name value` and `--name=value` mean the same, and `--` ends the options.
package struct OptionReader {
    /// One word of the command line.
    package enum Word: Equatable {
        /// An option's name, with its dashes.
        case option(String)
        /// Anything else.
        case operand(String)
    }

    private var words: ArraySlice<String>
    private var optionsAreOver = false
    private var option = ""
    private var attached: String?
    private let program: String

    /// Creates a reader of the words after the program's name.
    ///
    /// - Parameter program: the program whose help error messages refer to.
    package init(_ words: some Sequence<String>, of program: String) {
        self.words = ArraySlice(words)
        self.program = program
    }

    /// The next word; nil at the end.
    package mutating func next() -> Word? {
        guard let word = words.popFirst() else { return nil }
        if optionsAreOver || !word.hasPrefix("-") { return .operand(word) }
        if word == "--" {
            optionsAreOver = true
            return next()
        }
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        option = parts[0]
        attached = parts.count > 1 ? parts[1] : nil
        return .option(option)
    }

    /// The value of the option just read.
    ///
    /// - Parameter expected: a description of the value, for the error message.
    package mutating func text(_ expected: String) throws(CommandFailure) -> String {
        var value = attached.take()
        if value == nil, let word = words.first, !word.hasPrefix("--") { value = words.popFirst() }
        guard let value, !value.isEmpty else { throw usage("\(option) needs \(expected)") }
        return value
    }

    /// The value of the option just read: a whole number within bounds.
    package mutating func number<Number: FixedWidthInteger>(in range: ClosedRange<Number>) throws(CommandFailure)
        -> Number
    {
        let expected = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        let text = try text(expected)
        guard let number = Number(text), range.contains(number) else {
            throw usage("\(option) needs \(expected), not “\(text)”")
        }
        return number
    }

    /// The value of the option just read: a number from 0 up.
    package mutating func share(upTo most: Double) throws(CommandFailure) -> Double {
        let expected = "a number from 0 to \(most)"
        let text = try text(expected)
        guard let number = Double(text), (0...most).contains(number) else {
            throw usage("\(option) needs \(expected), not “\(text)”")
        }
        return number
    }

    /// Rejects a value for an option that takes none.
    package func finish() throws(CommandFailure) {
        if attached != nil { throw usage("\(option) takes no value") }
    }

    /// The command line is wrong.
    package func usage(_ text: String) -> CommandFailure { .usage(text, of: program) }
}

/// Why a program cannot continue: one line for standard error, and the exit status.
package struct CommandFailure: Error, Equatable, CustomStringConvertible {
    /// What is wrong and what to do about it; always one line.
    package let description: String
    /// 64 for a wrong command line, 1 for errors of the machine or the network, 130 for an interruption; a program's help lists
    /// others.
    package let exitStatus: Int32

    /// Creates a failure; the lines of `text` are joined to one, and what would control a terminal is replaced.
    package init(_ text: String, exitStatus: Int32 = 1) {
        let line = text.split(whereSeparator: \.isNewline).joined(separator: " ").unicodeScalars
        let shown = line.map { $0.properties.generalCategory == .control ? "?" : $0 }
        description = String(String.UnicodeScalarView(shown))
        self.exitStatus = exitStatus
    }

    /// The command line of `program` is wrong.
    package static func usage(_ text: String, of program: String) -> CommandFailure {
        CommandFailure("\(text) (see \(program) --help)", exitStatus: 64)
    }
}
