package store

// MaxPruningsSince bounds how many rows are read to find a view's edits.
const MaxPruningsSince = maxPruningsSince
