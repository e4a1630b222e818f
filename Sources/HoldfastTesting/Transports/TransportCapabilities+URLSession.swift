// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Holdfast

extension TransportCapabilities {
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
