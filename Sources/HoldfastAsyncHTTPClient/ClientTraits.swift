// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Foundation
    internal import HoldfastSemantics

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// What a client does to messages below a pipeline.
    struct ClientTraits: Sendable {
        /// Whether gzip and deflate are decoded; nil: unknown.
        let undoesCodings: Bool?

        /// The traits as the caller declares them.
        init(undoesCodings: Bool?) {
            self.undoesCodings = undoesCodings
        }

        /// The traits of clients with this configuration.
        init(_ configuration: HTTPClient.Configuration) {
            switch configuration.decompression {
            case .disabled: self.init(undoesCodings: false)
            case .enabled: self.init(undoesCodings: true)
            }
        }

        /// The traits of a client. Its configuration is not public, so it is read by reflection; if that fails, it is unknown.
        init(of client: HTTPClient) {
            if let configuration = ClientTraits.configuration(of: client) {
                self.init(configuration)
            } else {
                self.init(undoesCodings: nil)
            }
        }

        /// The configuration of a client, by reflection; nil if that fails.
        static func configuration(of client: HTTPClient) -> HTTPClient.Configuration? {
            Mirror(reflecting: client).children.first { $0.label == "configuration" }?.value
                as? HTTPClient.Configuration
        }

        /// Whether clients with this configuration are known not to follow redirects.
        static func returnsRedirects(_ configuration: HTTPClient.Configuration) -> Bool {
            let mode = Mirror(reflecting: configuration.redirectConfiguration).children.first { $0.label == "mode" }?
                .value
            return mode.map { "\($0)" == "disallow" } ?? false
        }

        /// The Accept-Encoding that is sent if the request has none; nil: none.
        ///
        /// A part of coded content cannot be decoded, so parts are requested without a coding.
        func acceptEncoding(for request: URLRequest) -> (value: String, isAddedByClient: Bool)? {
            guard undoesCodings != false, request.value(forHTTPHeaderField: "Accept-Encoding") == nil else {
                return nil
            }
            if request.value(forHTTPHeaderField: "Range") != nil { return ("identity", false) }
            return undoesCodings == true ? ("deflate, gzip", true) : nil
        }

        /// What happened to a response's content coding.
        func coding(of fields: HeaderFields) -> Coding {
            let codings = fields.values(of: "Content-Encoding")
                .flatMap { $0.split(separator: ",") }
                .map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
                .filter { !$0.isEmpty }
            guard let first = codings.first, first == "gzip" || first == "deflate" else { return .kept }
            switch undoesCodings {
            case false: return .kept
            // The client decodes the first coding that it reads, whatever was applied after it.
            case true: return codings.dropFirst().allSatisfy { $0 == "identity" } ? .undone : .uncertain
            default: return .uncertain
            }
        }

        /// What happened to a content coding.
        enum Coding: Sendable {
            case kept, undone, uncertain
        }
    }
#endif
