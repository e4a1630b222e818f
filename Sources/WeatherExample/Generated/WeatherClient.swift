// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    internal import Foundation
    internal import HTTPTypes

    /// A client as an OpenAPI generator makes it: a method for each operation, and a transport below them.
    struct WeatherClient: Sendable {
        let serverURL: URL
        let key: String
        let transport: any ClientTransport

        /// GET /stations.
        func listStations(acceptLanguage: String) async throws -> Reading {
            try await get("/stations", language: acceptLanguage, operationID: "listStations")
        }

        /// GET /stations/{station}/current.
        func getCurrent(station: Int, acceptLanguage: String) async throws -> Reading {
            try await get("/stations/\(station)/current", language: acceptLanguage, operationID: "getCurrent")
        }

        /// GET /stations/{station}/forecast.
        func getForecast(station: Int, days: Int, acceptLanguage: String) async throws -> Reading {
            try await get(
                "/stations/\(station)/forecast?days=\(days)",
                language: acceptLanguage,
                operationID: "getForecast"
            )
        }

        private func get(_ path: String, language: String, operationID: String) async throws -> Reading {
            var request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: path)
            request.headerFields[.acceptLanguage] = language
            if let name = HTTPField.Name("X-API-Key") { request.headerFields[name] = key }
            let (response, body) = try await transport.send(
                request,
                body: nil,
                baseURL: serverURL,
                operationID: operationID
            )
            return Reading(try await body?.collected() ?? Data(), status: response.status.code)
        }
    }
#endif
