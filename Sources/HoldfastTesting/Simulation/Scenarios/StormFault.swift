// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Something that is wrong with a simulated server for a while.
public struct StormFault: Sendable, Hashable, Codable {
    /// What is wrong.
    public struct Kind: RawRepresentable, Sendable, Hashable, Codable {
        /// The word in scenario files.
        public let rawValue: String

        /// A kind from its word.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Every request is refused at once.
        public static let down = Kind(rawValue: "down")
        /// Requests that begin meanwhile take `amount` times as long.
        public static let slow = Kind(rawValue: "slow")
        /// A share of `amount` (0 to 1) of the requests is refused at once, each by chance.
        public static let err = Kind(rawValue: "err")
        /// Every request is refused with 429 and `Retry-After: amount` (whole seconds) at once.
        public static let throttle = Kind(rawValue: "throttle")

        static let all: [Kind] = [.down, .slow, .err, .throttle]
    }

    /// What is wrong.
    public var kind: Kind
    /// When it begins, in seconds.
    public var from: Double
    /// When it is over, in seconds.
    public var to: Double
    /// How bad it is, in the kind's own measure; 0 for `down`.
    public var amount: Double

    /// A fault.
    public init(_ kind: Kind, from: Double, to: Double, amount: Double = 0) {
        self.kind = kind
        self.from = from
        self.to = to
        self.amount = amount
    }

    /// Reads a fault; `amount` may be left out.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        kind = try container.decode(Kind.self, forKey: .kind)
        from = try container.decode(Double.self, forKey: .from)
        to = try container.decode(Double.self, forKey: .to)
        amount = try container.decodeIfPresent(Double.self, forKey: .amount) ?? 0
    }

    /// Whether it is there at a time.
    func isActive(at seconds: Double) -> Bool {
        from <= seconds && seconds < to
    }
}
