// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A value among rules that makes no sense, and what would.
public struct RetryRulesError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name of the property, as it stands in ``RetryRules``, such as `hedging.percentile`.
    public var property: String
    /// What is wrong with its value and what to set instead.
    public var message: String

    /// An error about a property.
    public init(_ property: String, _ message: String) {
        self.property = property
        self.message = message
    }

    public var description: String { "\(property): \(message)" }
}

extension RetryRules {
    /// Refuses values that make no sense.
    ///
    /// - Throws: ``RetryRulesError`` for the first one found, which names it.
    public func validate() throws(RetryRulesError) {
        guard 1...1000 ~= maxAttempts else {
            throw RetryRulesError("maxAttempts", "\(maxAttempts) is no number of attempts; use 1 to 1000.")
        }
    }
}
