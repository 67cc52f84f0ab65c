// TapCapture
