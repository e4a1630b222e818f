// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

extension IgnoredCookies {
    /// Well-known cookies of load balancers, bot filters and analytics, by their vendors' documentation.
    ///
    /// They say which server is to answer, or count visits; no origin makes its content by them. Left out is what may carry a
    /// login or select content, however often it changes: session cookies of applications (`JSESSIONID`, `SERVERID`), proofs of a
    /// passed challenge (`cf_clearance`), waiting rooms, experiments (`_gaexp`, `__utmx`), visitor profiles that pages are made
    /// by (`hubspotutk`, `__hstc`, Adobe's, Intercom's).
    public static let wellKnown = IgnoredCookies(names: stickiness + botFilters + analytics)

    /// Which server of several answers.
    private static let stickiness = [
        // AWS: Application Load Balancer, its target groups and applications, Classic Load Balancer.
        "AWSALB", "AWSALBCORS", "AWSALBTG*", "AWSALBAPP-*", "AWSELB*",
        // Cloudflare Load Balancing; Google Cloud.
        "__cflb", "GCLB",
        // Azure: App Service, Application Gateway, Front Door.
        "ARRAffinity", "ARRAffinitySameSite", "ApplicationGatewayAffinity", "ApplicationGatewayAffinityCORS",
        "ASLBSA", "ASLBSACORS",
        // F5 BIG-IP; Imperva; DigitalOcean; Heroku.
        "BIGipServer*", "nlbi_*", "DO-LB", "heroku-session-affinity",
    ]

    /// How likely a client is no person, and how often it asks.
    private static let botFilters = [
        // Cloudflare.
        "__cf_bm", "_cfuvid", "__cfruid",
        // Imperva.
        "incap_ses_*", "visid_incap_*",
        // Akamai Bot Manager.
        "ak_bmsc", "bm_mi", "bm_sv", "bm_sz", "_abck",
    ]

    /// What pages count visits with.
    private static let analytics = [
        // Google Analytics, its older form, and Google Ads.
        "_ga", "_ga_*", "_gid", "_gat", "_gat_*", "_dc_gtm_*", "_gac_*", "_gcl_*",
        "__utma", "__utmb", "__utmc", "__utmt", "__utmt_*", "__utmz",
        // Meta; Microsoft Advertising, Clarity, Application Insights.
        "_fbp", "_fbc", "_uetsid", "_uetvid", "_uetmsclkid", "_clck", "_clsk", "ai_session", "ai_user",
        // Hotjar; Matomo; HubSpot's counts of a visit; Yandex Metrica; Baidu; Snowplow; Datadog.
        "_hj*", "_pk_*", "__hssc", "__hssrc", "_ym_*", "Hm_lvt_*", "Hm_lpvt_*", "_sp_id.*", "_sp_ses.*", "_dd_s",
    ]
}
