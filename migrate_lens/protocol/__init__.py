"""What both ends of the wire share: frames and selectors; standard library only."""
