// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if XML
    import Foundation
    import Holdfast
    import HoldfastServices
    import HoldfastTesting
    @testable import HoldfastXML

    /// A service that speaks XML, for tests.
    enum XMLBed {
        struct Failure: AnyErrorResponse {
            var message: String
            var code: Int
        }

        struct Service: WebService {
            typealias ErrorResponse = Failure
            static let shared = ServiceClient(Service(), transport: ScriptedTransport([]))
            var baseURL = URL(string: "https://example.com/api") ?? URL(filePath: "/")
        }

        /// What a note's text is decoded to.
        struct Note: Codable, Sendable, Equatable {
            var id: Int
            var text: String
            var tags: [String]
        }

        static func decoded(_ text: String, limits: XMLLimits = XMLLimits()) throws -> Note {
            try decoded(Data(text.utf8), limits: limits)
        }

        static func decoded(_ data: Data, limits: XMLLimits = XMLLimits()) throws -> Note {
            try decoded(Note.self, from: data, limits: limits)
        }

        static func decoded<Output: Decodable>(
            _ type: Output.Type,
            from data: Data,
            limits: XMLLimits = XMLLimits()
        ) throws -> Output {
            let coding = EndpointCoding(endpoint: Check(), service: Service())
            return try XMLBody(limits: limits).decode(type, from: data, for: coding)
        }

        struct Check: EmptyEndpoint {
            typealias Service = XMLBed.Service
            static let outputFormat = OutputFormat.XML
            let path = "status"
        }
    }
#endif
