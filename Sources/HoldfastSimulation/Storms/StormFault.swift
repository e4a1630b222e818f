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
        /// Every request is refused with 503 and `Retry-After: amount` (whole seconds) at once.
        public static let unavailable = Kind(rawValue: "unavailable")
        /// The first attempt of every call is refused at once, and no other.
        public static let once = Kind(rawValue: "once")

        static let all: [Kind] = [.down, .slow, .err, .throttle, .unavailable, .once]
    }

    /// What is wrong.
    public var kind: Kind
    /// When it begins, in seconds.
    public var from: Double
    /// When it is over, in seconds.
    public var to: Double
    /// How bad it is, in the kind's own measure; 0 for `down` and `once`.
    public var amount: Double
    /// The share of requests that it befalls, each by chance; 1 by default.
    public var share = 1.0
    /// It befalls so many of the scenario's resources, from the first; nil, the default: all.
    public var resources: Int?

    /// A fault.
    public init(
        _ kind: Kind,
        from: Double,
        to: Double,
        amount: Double = 0,
        share: Double = 1,
        resources: Int? = nil
    ) {
        self.kind = kind
        self.from = from
        self.to = to
        self.amount = amount
        self.share = share
        self.resources = resources
    }

    /// Reads a fault; `amount`, `share` and `resources` may be left out.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        kind = try container.decode(Kind.self, forKey: .kind)
        from = try container.decode(Double.self, forKey: .from)
        to = try container.decode(Double.self, forKey: .to)
        amount = try container.decodeIfPresent(Double.self, forKey: .amount) ?? 0
        share = try container.decodeIfPresent(Double.self, forKey: .share) ?? 1
        resources = try container.decodeIfPresent(Int.self, forKey: .resources)
    }

    /// Whether it is there at a time, for a resource.
    func isActive(at seconds: Double, for resource: Int) -> Bool {
        from <= seconds && seconds < to && resources.map { resource < $0 } ?? true
    }
}
