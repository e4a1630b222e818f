// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if HTTPTypes
    internal import Foundation
    internal import Holdfast

    #if canImport(FoundationNetworking)
        // On Linux, Foundation has URLSession in a separate module.
        internal import FoundationNetworking
    #endif

    /// Code that uses a generated client.
    struct GeneratedWeather: Sendable {
        let session: URLSession
        let pipeline: Pipeline
        let url: URL
        let key: String

        func readBefore(_ question: Question) async throws -> Reading {
            let client = WeatherClient(serverURL: url, key: key, transport: SessionTransport(session: session))
            return try await client.read(question)
        }

        func readAfter(_ question: Question) async throws -> Reading {
            let client = WeatherClient(serverURL: url, key: key, transport: PipelineTransport(pipeline: pipeline))
            return try await client.read(question)
        }
    }

    extension WeatherClient {
        fileprivate func read(_ question: Question) async throws -> Reading {
            switch question.subject {
            case .stations:
                try await listStations(acceptLanguage: question.language)
            case .current(let station):
                try await getCurrent(station: station, acceptLanguage: question.language)
            case .forecast(let station, let days):
                try await getForecast(station: station, days: days, acceptLanguage: question.language)
            }
        }
    }
#endif
