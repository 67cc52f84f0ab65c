// TapCore
