// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Foundation
    internal import HoldfastSemantics

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// What a client does to messages beneath a pipeline.
    struct ClientTraits: Sendable {
        /// Whether gzip and deflate are undone; nil: not known.
        let undoesCodings: Bool?

        /// The traits as somebody says they are.
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

        /// The traits of a client; its configuration is not public, so it is read by reflection, and where that fails it is
        /// taken as unknown.
        init(of client: HTTPClient) {
            if let configuration = ClientTraits.configuration(of: client) {
                self.init(configuration)
            } else {
                self.init(undoesCodings: nil)
            }
        }

        /// The configuration of a client, by reflection; nil where it cannot be had.
        static func configuration(of client: HTTPClient) -> HTTPClient.Configuration? {
            Mirror(reflecting: client).children.first { $0.label == "configuration" }?.value
                as? HTTPClient.Configuration
        }

        /// Whether clients with this configuration are known to follow no redirect by themselves.
        static func handsUpRedirects(_ configuration: HTTPClient.Configuration) -> Bool {
            let mode = Mirror(reflecting: configuration.redirectConfiguration).children.first { $0.label == "mode" }?
                .value
            return mode.map { "\($0)" == "disallow" } ?? false
        }

        /// The Accept-Encoding that goes out where the request has none; nil: none.
        ///
        /// A part of a coded content cannot be decoded, so parts are asked for as they are.
        func acceptEncoding(for request: URLRequest) -> (value: String, isAddedByClient: Bool)? {
            guard undoesCodings != false, request.value(forHTTPHeaderField: "Accept-Encoding") == nil else {
                return nil
            }
            if request.value(forHTTPHeaderField: "Range") != nil { return ("identity", false) }
            return undoesCodings == true ? ("deflate, gzip", true) : nil
        }

        /// What became of a response's content coding.
        func coding(of fields: HeaderFields) -> Coding {
            let codings = fields.values(of: "Content-Encoding")
                .flatMap { $0.split(separator: ",") }
                .map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
                .filter { !$0.isEmpty && $0 != "identity" }
            guard let first = codings.first, first == "gzip" || first == "deflate" else { return .kept }
            switch undoesCodings {
            case false: return .kept
            // The client undoes the first coding that it reads, whatever was laid over it.
            case true: return codings.count == 1 ? .undone : .uncertain
            default: return .uncertain
            }
        }

        /// What became of a content coding.
        enum Coding: Sendable {
            case kept, undone, uncertain
        }
    }
#endif
