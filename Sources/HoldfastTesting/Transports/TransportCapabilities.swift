// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast

/// What a transport declares to do where transports may differ; the defaults are the best there is.
///
/// ``TransportConformance`` holds a transport to what it declares.
public struct TransportCapabilities: Sendable {
    /// How far a transport reads ahead of the reader of a response body.
    public enum ReadAhead: Sendable, Hashable {
        /// It takes in at most so many bytes beyond what was read, and then lets the server wait.
        case backPressure(bytes: Int)
        /// It takes in everything: so many bytes wait in memory, the rest in a file.
        case spills(memory: Int)
        /// It hands up a response when its body has come whole.
        case whole
    }

    /// How a transport sends request bodies that are streams.
    public enum RequestStreaming: Sendable, Hashable {
        /// As they are read, at most so many bytes ahead of what the server took.
        case backPressure(bytes: Int)
        /// It reads them to their end, into memory or a file, before it sends anything.
        case collects
    }

    /// How far it reads ahead of the reader of a response body; 1 MiB by default.
    public var readAhead = ReadAhead.backPressure(bytes: 1 << 20)
    /// How it sends request bodies that are streams; at most 1 MiB ahead by default.
    public var requestStreaming = RequestStreaming.backPressure(bytes: 1 << 20)
    /// Whether it gives interim (1xx) responses to `CallContext.report(interim:)`. If not, it drops them.
    public var reportsInterim = true
    /// Whether it hands up repeated response field lines one by one. If not, they are joined with ", ".
    public var keepsRepeatedLines = true
    /// Whether request fields with an empty value are sent. If not, they are left out.
    public var sendsEmptyFields = true
    /// The content codings that it undoes, in lower case. Others are handed up coded, or refused.
    public var undoesContentCodings: Set<String> = []
    /// Whether a content coding that it does not know ends the exchange with `.unsupported`. If not, it is handed up coded.
    public var refusesUnknownContentCodings = false
    /// Whether redirects come with their body. If not, without.
    public var handsUpRedirectBodies = true
    /// Whether a response with the status of a redirect that has no Location comes with its body. If not, without.
    public var handsUpBodiesWithoutLocation = true
    /// Whether a 401 with a Basic challenge comes with its body. If not, without.
    public var handsUpChallengeBodies = true
    /// Whether it sends content in a GET. If not, it refuses with `.unsupported` and sends nothing.
    public var sendsContentInGET = true
    /// Whether an exchange uses the connection of one before it that was read to its end.
    public var reusesConnections = true
    /// Whether an error says by `connectionReused` that the connection had been used before.
    public var reportsConnectionReuse = true

    /// The best there is.
    public init() {}

    /// What a `URLSessionTransport` with a session of its own can do on this platform, as `docs/clients/urlsession.md` has it.
    public static var urlSession: TransportCapabilities {
        var capabilities = TransportCapabilities()
        capabilities.readAhead = .spills(memory: URLSessionTransport.Limits().bodyInMemory)
        capabilities.requestStreaming = .collects
        capabilities.keepsRepeatedLines = false
        // Foundation refuses it everywhere, on Apple systems since those of 2019.
        capabilities.sendsContentInGET = false
        #if canImport(Darwin)
            // Apple's URLSession keeps interim responses to itself.
            capabilities.undoesContentCodings = ["gzip", "deflate", "br"]
            capabilities.reportsInterim = false
        #else
            // libcurl undoes one coding more and refuses what it does not know; tasks have no metrics; Foundation keeps the
            // body of a redirect to itself that leads nowhere.
            capabilities.undoesContentCodings = ["gzip", "deflate", "br", "zstd"]
            capabilities.refusesUnknownContentCodings = true
            capabilities.reportsConnectionReuse = false
            capabilities.handsUpBodiesWithoutLocation = false
        #endif
        return capabilities
    }

    /// What a `URLSessionTransport` over somebody's session can do on this platform.
    public static var urlSessionOfOthers: TransportCapabilities {
        var capabilities = urlSession
        #if !canImport(Darwin)
            // A task's delegate is told of redirects and challenges on Linux, and of nothing else.
            capabilities.readAhead = .whole
            capabilities.handsUpRedirectBodies = false
            capabilities.handsUpChallengeBodies = false
            capabilities.reportsInterim = false
        #endif
        return capabilities
    }
}
