package backup

// NotCarried are notCarried.
var NotCarried = notCarried
