// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastCommand

/// Cuts a command line into options with their values, and operands.
struct OptionReader {
    /// One word of the command line.
    enum Word: Equatable {
        /// An option's name, dashes included.
        case option(String)
        /// Anything else.
        case operand(String)
    }

    private var words: ArraySlice<String>
    private var optionsAreOver = false
    private var option = ""
    private var attached: String?

    /// A reader of the words after the program's name.
    init(_ words: some Sequence<String>) {
        self.words = ArraySlice(words)
    }

    /// The next word; nil at the end.
    mutating func next() -> Word? {
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
    /// - Parameter expected: what the value is, for the complaint.
    mutating func text(_ expected: String) throws(CommandFailure) -> String {
        if let value = attached {
            attached = nil
            guard !value.isEmpty else { throw .usage("\(option) wants \(expected)") }
            return value
        }
        guard let value = words.first, !value.hasPrefix("--"), !value.isEmpty else {
            throw .usage("\(option) wants \(expected)")
        }
        words.removeFirst()
        return value
    }

    /// The value of the option just read: a whole number within bounds.
    mutating func number<Number: FixedWidthInteger>(in range: ClosedRange<Number>) throws(CommandFailure) -> Number {
        let expected = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        let text = try text(expected)
        guard let number = Number(text), range.contains(number) else {
            throw .usage("\(option) wants \(expected), not “\(text)”")
        }
        return number
    }

    /// The value of the option just read: a share from 0 up.
    mutating func share(upTo most: Double) throws(CommandFailure) -> Double {
        let expected = "a number from 0 to \(most)"
        let text = try text(expected)
        guard let number = Double(text), (0...most).contains(number) else {
            throw .usage("\(option) wants \(expected), not “\(text)”")
        }
        return number
    }

    /// Refuses a value that the option just read did not take.
    func finish() throws(CommandFailure) {
        if attached != nil { throw .usage("\(option) takes no value") }
    }
}
