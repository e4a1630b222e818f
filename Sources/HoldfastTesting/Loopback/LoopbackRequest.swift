// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// A header field line, as it was received or is to be sent.
public struct LoopbackField: Sendable, Hashable {
    /// The name, in the case it came in.
    public var name: String
    /// The value without the blanks around it.
    public var value: String

    /// A line.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// Whether the line has this name, in whatever case.
    public func isNamed(_ other: String) -> Bool {
        name.lowercased() == other.lowercased()
    }
}

/// A request exactly as the server received it.
public struct LoopbackRequest: Sendable, Hashable {
    /// Its number in the order of arrival, over all connections; the first is 0.
    public package(set) var number = 0
    /// The connection it came on; the first is 0.
    public let connection: Int
    /// The method token.
    public let method: String
    /// The request target as it stood in the request line.
    public let target: String
    /// The protocol version as it stood in the request line.
    public let version: String
    /// The header field lines in order.
    public let fields: [LoopbackField]
    /// The content, freed of a chunked coding; empty where the server's ``LoopbackIntake`` did not keep it.
    public package(set) var body: [UInt8] {
        didSet {
            content = TransferPattern.Checker()
            content.read(ByteChunk(body))
        }
    }
    /// What was read of a content that was not kept.
    package var content = TransferPattern.Checker()

    /// A request that came in.
    package init(
        connection: Int,
        method: String,
        target: String,
        version: String,
        fields: [LoopbackField]
    ) {
        self.connection = connection
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
        body = []
    }

    /// The length of the content, kept or not.
    public var bodyLength: Int { content.count }

    /// Whether the content, kept or not, is a ``TransferPattern`` from its first byte on.
    public var isPattern: Bool { content.isIntact }

    /// The values of all lines with this name, in order.
    public func values(of name: String) -> [String] {
        fields.filter { $0.isNamed(name) }.map(\.value)
    }

    /// The content as text.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// The target up to its query.
    public var path: String {
        String(target.prefix { $0 != "?" })
    }

    /// Whether the client wants the connection to end after this exchange.
    var asksToClose: Bool {
        var options: Set<String> = []
        for value in values(of: "Connection") {
            for option in value.lowercased().split(separator: ",") { options.insert(option.filter { $0 != " " }) }
        }
        return options.contains("close") || (version == "HTTP/1.0" && !options.contains("keep-alive"))
    }
}
