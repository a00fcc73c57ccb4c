"""Jobs on devices that never ran: their traces, and the truth about them."""
