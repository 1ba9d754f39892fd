package backup

// NotCarried exports notCarried.
var NotCarried = notCarried
