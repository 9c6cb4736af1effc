"""What must hold: Great Expectations suites over tables that SQL has aggregated."""
