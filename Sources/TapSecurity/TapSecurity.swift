// TapSecurity
