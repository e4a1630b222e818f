// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The texts that the service sends; equal questions have equal answers, at any time.
enum WeatherContent {
    /// The stations, by number.
    static let stations = ["Harbour", "Summit", "Old Town", "Airport", "Lighthouse", "Forest", "Lake", "Valley"]

    private static let words = [
        "en": ["clear", "cloudy", "rain", "snow", "fog"], "de": ["klar", "bewölkt", "Regen", "Schnee", "Nebel"],
    ]

    /// The list of stations.
    static var list: String {
        let entries = stations.enumerated().map { #"{"id":\#($0.offset),"name":"\#($0.element)"}"# }
        return #"{"stations":[\#(entries.joined(separator: ","))]}"#
    }

    /// The weather of a station; `reports` is how many people have reported on it.
    static func current(_ station: Int, language: String, reports: Int) -> String {
        let word = words[language]?[station % 5] ?? "?"
        let humidity = 40 + (station * 13) % 50
        return #"{"station":\#(station),"celsius":\#(celsius(station, 0)),"sky":"\#(word)","#
            + #""humidity":\#(humidity),"reports":\#(reports)}"#
    }

    /// The next days at a station, hour by hour.
    static func forecast(_ station: Int, days: Int) -> String {
        let hours = (0..<(days * 24)).map { #"{"hour":\#($0),"celsius":\#(celsius(station, $0))}"# }
        return #"{"station":\#(station),"hours":[\#(hours.joined(separator: ","))]}"#
    }

    /// The language of the texts for a value of Accept-Language.
    static func language(for preference: String?) -> String {
        let first = preference?.prefix { $0 != "," && $0 != ";" && $0 != "-" }.lowercased() ?? "en"
        return words[first] == nil ? "en" : first
    }

    private static func celsius(_ station: Int, _ hour: Int) -> Int {
        (station * 7 + hour * 3) % 30 - 5
    }
}
