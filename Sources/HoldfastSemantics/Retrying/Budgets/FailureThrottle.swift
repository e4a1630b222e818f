// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The token count of gRPC's retry throttling (A6), in thousandths; retries take none, failures do.
struct FailureThrottle: Sendable, Hashable {
    private static let scale = 1000
    private let most: Int
    private let reward: Int
    private(set) var thousandths: Int

    init(maxTokens: Int, tokenRatio: Double) {
        most = min(max(maxTokens, 1), 1000) * FailureThrottle.scale
        let bounded = tokenRatio > 0 ? min(tokenRatio, 1000) : 0
        // A6 ignores what follows the third decimal. A billionth more, so that 0.29 × 1000 does not count as 289.
        reward = Int(bounded * Double(FailureThrottle.scale) + 1e-6)
        thousandths = most
    }

    /// Whether retries and hedges are allowed: only above half of all tokens.
    var allows: Bool { 2 * thousandths > most }

    /// How many retries in a row could fail before no more are allowed.
    var retries: Int {
        let above = 2 * thousandths - most
        return above > 0 ? (above + 2 * FailureThrottle.scale - 1) / (2 * FailureThrottle.scale) : 0
    }

    mutating func attemptEnded(succeeded: Bool) {
        thousandths = succeeded ? min(most, thousandths + reward) : max(0, thousandths - FailureThrottle.scale)
    }

    static func problem(_ maxTokens: Int, _ tokenRatio: Double) -> String? {
        guard 1...1000 ~= maxTokens else { return "maxTokens \(maxTokens) is out of range; use 1 to 1000." }
        guard tokenRatio >= 0.001, tokenRatio <= Double(maxTokens) else {
            return "tokenRatio \(tokenRatio) is out of range; use 0.001 to maxTokens, \(maxTokens)."
        }
        return nil
    }
}
