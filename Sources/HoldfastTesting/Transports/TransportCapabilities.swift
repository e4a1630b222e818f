// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast

/// What a transport declares about behavior that may differ between transports; the defaults are the best possible.
///
/// ``TransportConformance`` tests a transport against its declaration.
public struct TransportCapabilities: Sendable {
    /// How far a transport reads ahead of the reader of a response body.
    public enum ReadAhead: Sendable, Hashable {
        /// It receives at most this many bytes beyond what was read, and then lets the server wait.
        case backPressure(bytes: Int)
        /// It receives everything: this many bytes wait in memory, the rest in a file.
        case spills(memory: Int)
        /// It returns a response once its whole body has arrived.
        case whole
    }

    /// How a transport sends request bodies that are streams.
    public enum RequestStreaming: Sendable, Hashable {
        /// As they are read, at most this many bytes ahead of what the server has received.
        case backPressure(bytes: Int)
        /// It reads them to the end, into memory or a file, before it sends anything.
        case collects
    }

    /// How far it reads ahead of the reader of a response body; 1 MiB by default.
    public var readAhead = ReadAhead.backPressure(bytes: 1 << 20)
    /// How it sends request bodies that are streams; at most 1 MiB ahead by default.
    public var requestStreaming = RequestStreaming.backPressure(bytes: 1 << 20)
    /// Whether it passes interim (1xx) responses to `CallContext.report(interim:)`. If not, it drops them.
    public var reportsInterim = true
    /// Whether it returns repeated response field lines separately. If not, they are joined with ", ".
    public var keepsRepeatedLines = true
    /// Whether request fields with an empty value are sent. If not, they are left out.
    public var sendsEmptyFields = true
    /// The content codings that it decodes, in lower case. Others are returned encoded, or refused.
    public var undoesContentCodings: Set<String> = []
    /// Whether an unknown content coding ends the exchange with `.unsupported`. If not, the content is returned encoded.
    public var refusesUnknownContentCodings = false
    /// Whether redirects have their body. If not, the body is missing.
    public var returnsRedirectBodies = true
    /// Whether a response with a redirect status but no Location has its body. If not, the body is missing.
    public var returnsBodiesWithoutLocation = true
    /// Whether a 401 with a Basic challenge has its body. If not, the body is missing.
    public var returnsChallengeBodies = true
    /// Whether it sends content in a GET. If not, it refuses with `.unsupported` and sends nothing.
    public var sendsContentInGET = true
    /// Whether an exchange uses the connection of an earlier one that was read to its end.
    public var reusesConnections = true
    /// Whether `connectionReused` of an error says that the connection had been used before.
    public var reportsConnectionReuse = true

    /// The best possible.
    public init() {}

    /// What a `URLSessionTransport` can do on this platform; see `docs/clients/urlsession.md`.
    public static var urlSession: TransportCapabilities {
        var capabilities = TransportCapabilities()
        capabilities.readAhead = .spills(memory: URLSessionTransport.Limits().bodyInMemory)
        capabilities.requestStreaming = .collects
        capabilities.keepsRepeatedLines = false
        // Foundation refuses it everywhere, on Apple systems since 2019.
        capabilities.sendsContentInGET = false
        #if canImport(Darwin)
            // Apple's URLSession does not report interim responses.
            capabilities.undoesContentCodings = ["gzip", "deflate", "br"]
            capabilities.reportsInterim = false
        #else
            // libcurl decodes one more coding and refuses unknown ones; tasks have no metrics; Foundation does not return the body
            // of a redirect without a Location.
            capabilities.undoesContentCodings = ["gzip", "deflate", "br", "zstd"]
            capabilities.refusesUnknownContentCodings = true
            capabilities.reportsConnectionReuse = false
            capabilities.returnsBodiesWithoutLocation = false
        #endif
        return capabilities
    }
}
